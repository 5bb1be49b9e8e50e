// SPDX-License-Identifier: Apache-2.0
// What container runtimes call their cgroups, and what they leave on disk about their containers.
#pragma once

#include "who/containers.hpp"
#include "who/host_files.hpp"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What a runtime's files say about a container.

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

using VisitRecord = std::function<void(const ContainerRecord&)>;

// A runtime is a row of this kind; whatever it does not have is left out.
struct ContainerRuntime {
    std::string_view name{}; // as it is shown

    // In the path of a cgroup: what stands before a container's id, and which cgroups have bare ids in them.
    std::array<std::string_view, 2> prefixes{};
    std::array<std::string_view, 2> parents{};

    // On disk, below the root of the host: folders that have one per container in them, called by its id. A last name
    // of * stands for each that is there.
    std::array<std::string_view, 4> folders{};
    std::vector<std::string> (*more_folders)(const HostFiles& files) = nullptr; // by a configuration
    bool in_homes = false; // runs without root, too, and has the same folders below a home then

    // The file in a container's folder, and its reader; false where the text is not what it should be.
    std::string_view record{};
    bool (*read)(const std::string& text, ContainerRecord& record) = nullptr;
    // What such a folder says itself, by a list or by its names.
    void (*each_listed)(const HostFiles& files, const std::string& folder, const VisitRecord& visit) = nullptr;
};

// What says most about a pod comes first.
extern const std::array<ContainerRuntime, 5> container_runtimes;

// The pods that the kubelet keeps a folder of logs for: name, namespace and uid.
void each_logged_pod(const HostFiles& host, const std::function<void(const ContainerNames&)>& visit);
// The container of such a pod; empty where it has, or had, several.
std::string only_container(const HostFiles& host, const ContainerNames& pod);

// Readers of the table.
bool read_containerd_task(const std::string& text, ContainerRecord& record);
bool read_docker_config(const std::string& text, ContainerRecord& record);
std::vector<std::string> docker_data_root(const HostFiles& files);
void each_stored(const HostFiles& files, const std::string& folder, const VisitRecord& visit);
void each_log_link(const HostFiles& host, const std::string& folder, const VisitRecord& visit);

} // namespace gpusnoop
