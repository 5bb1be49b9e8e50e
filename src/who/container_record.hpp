// SPDX-License-Identifier: Apache-2.0
// What a runtime's files say about a container.
#pragma once

#include "who/containers.hpp"

#include <string>
#include <string_view>

namespace gpusnoop {

// What one source says about one container.
struct ContainerRecord {
    std::string id;
    std::string given_name; // what the runtime itself calls it (docker ps): k8s_... where a kubelet had it made
    ContainerNames names;
    std::string sandbox_id{}; // of CRI-O: that one's record has the labels of the pod

    // Each keeps what is there already, and takes nothing of a length that no name has.
    void set_label(std::string_view key, std::string_view value); // or annotation; many name nothing
    void set_given_name(std::string_view name);
    void set_image(std::string_view image);
    void set_environment(std::string_view variable); // NAME=VALUE
    void set_device(std::string_view path);
};

// Adds what `names` does not have yet.
void fill(ContainerNames& names, const ContainerNames& more);

// True where the text can be an id of a container or a pod, and so is safe as a part of a path.
bool is_container_id(std::string_view text);

// Takes the annotations, the environment and the devices of an OCI runtime's config.json. False where it cannot be
// read; what is taken then is of no use.
bool read_oci_config(const std::string& text, ContainerRecord& record);

} // namespace gpusnoop
