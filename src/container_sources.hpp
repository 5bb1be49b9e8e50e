// SPDX-License-Identifier: Apache-2.0
// What each runtime leaves on disk about its containers.
#pragma once

#include "containers.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// What one source says about one container.
struct ContainerRecord {
    std::string id;
    std::string given_name; // what the runtime itself calls it (docker ps): k8s_... where a kubelet had it made
    ContainerNames names;

    // Each keeps what is there already, and takes nothing of a length that no name has.
    void set_label(std::string_view key, std::string_view value); // or annotation; many name nothing
    void set_given_name(std::string_view name);
    void set_image(std::string_view image);
};

// Adds what `names` does not have yet.
void fill(ContainerNames& names, const ContainerNames& more);

// Takes the annotations of an OCI runtime's config.json. False, and nothing taken, where it cannot be read.
bool read_oci_config(const HostFiles& files, const std::string& path, ContainerRecord& record);

// True where the text can be an id of a container or a pod, and so is safe as a part of a path.
bool is_container_id(std::string_view text);

// Looks below the root of the host, or below the home of a user for runtimes without root.
struct ContainerSource {
    std::optional<ContainerRecord> (*find)(const HostFiles& files, const std::string& id); // is_container_id(id)
    void (*each)(const HostFiles& files, const std::function<void(const ContainerRecord&)>& visit);
};

extern const ContainerSource containerd_tasks;
extern const ContainerSource containers_storage; // of CRI-O and podman
extern const ContainerSource kubelet_log_links;
extern const ContainerSource docker_containers;

// The pods that the kubelet keeps a folder of logs for: name, namespace and uid.
void each_logged_pod(const HostFiles& host, const std::function<void(const ContainerNames&)>& visit);
// The container of such a pod; empty where it has, or had, several.
std::string only_container(const HostFiles& host, const ContainerNames& pod);

} // namespace gpusnoop
