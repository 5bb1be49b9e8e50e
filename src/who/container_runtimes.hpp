// SPDX-License-Identifier: Apache-2.0
// Table of container runtimes: for each runtime, the patterns of its cgroup names, and a parser for the container
// metadata that the runtime stores on disk.
#pragma once

#include "who/containers.hpp"
#include "who/host_files.hpp"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Facts about one container from one source.
struct ContainerRecord {
    std::string id;
    std::string given_name; // name in the runtime (docker ps); k8s_... if a kubelet created the container
    ContainerNames names;
    std::string sandbox_id{}; // only for CRI-O: id of the sandbox, whose record has the pod's labels

    // The setters do not overwrite existing values, and ignore texts that are too long for a name.
    void set_label(std::string_view key, std::string_view value); // a label or annotation; most keys are ignored
    void set_given_name(std::string_view name);
    void set_image(std::string_view image);
    void set_environment(std::string_view variable); // NAME=VALUE
    void set_device(std::string_view path);
};

// Fills the empty fields of `names` from `more`.
void fill(ContainerNames& names, const ContainerNames& more);

// True if the text can be the id of a container or a pod. Such a text is safe as part of a path.
bool is_container_id(std::string_view text);

// Reads the annotations, environment and devices of an OCI runtime's config.json. Returns false if the text is
// malformed; `record` is then unusable.
bool read_oci_config(const std::string& text, ContainerRecord& record);

using VisitRecord = std::function<void(const ContainerRecord&)>;

// A row of the table of runtimes. Fields that do not apply to a runtime are empty.
struct ContainerRuntime {
    std::string_view name{}; // as shown to the user

    // Identification of the runtime in a cgroup path. prefixes: text before the container's id, such as "docker" in
    // "docker-ID.scope". parents: name of the parent, if the container's cgroup is named by the id alone, such as
    // "docker" in "docker/ID".
    std::array<std::string_view, 2> prefixes{};
    std::array<std::string_view, 2> parents{};

    // Folders below the host's root that have a subfolder for each container, named by its id. A final * matches all
    // subfolders.
    std::array<std::string_view, 4> folders{};
    std::vector<std::string> (*more_folders)(const HostFiles& files) =
        nullptr;           // finds more such folders in the runtime's configuration
    bool in_homes = false; // users can run it without root; `folders` are then relative to their homes

    // Name of the file that describes a container, in the container's folder. Its parser returns false if the text is
    // malformed.
    std::string_view record{};
    bool (*read)(const std::string& text, ContainerRecord& record) = nullptr;
    // Visits the containers that are listed in a file in `folder`, or whose ids are part of the file names in `folder`.
    void (*each_listed)(const HostFiles& files, const std::string& folder, const VisitRecord& visit) = nullptr;
};

// Sorted by how much a runtime records about pods: the most informative runtime is first.
extern const std::array<ContainerRuntime, 5> container_runtimes;

// Visits the pods for which the kubelet keeps a log folder. Name, namespace and uid of each are set.
void each_logged_pod(const HostFiles& host, const std::function<void(const ContainerNames&)>& visit);
// Returns the only container of a pod; empty if the pod has, or had, several.
std::string only_container(const HostFiles& host, const ContainerNames& pod);

// Functions that the rows of container_runtimes point to.
bool read_containerd_task(const std::string& text, ContainerRecord& record);
bool read_docker_config(const std::string& text, ContainerRecord& record);
std::vector<std::string> docker_data_root(const HostFiles& files);
void each_stored(const HostFiles& files, const std::string& folder, const VisitRecord& visit);
void each_log_link(const HostFiles& host, const std::string& folder, const VisitRecord& visit);

} // namespace gpusnoop
