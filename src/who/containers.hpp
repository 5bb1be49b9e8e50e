// SPDX-License-Identifier: Apache-2.0
// Names of containers and pods, read from files that container runtimes keep on the host. Neither the runtimes' sockets
// nor the Kubernetes API server are used.
#pragma once

#include "reader/message.hpp"
#include "reader/reader.hpp"
#include "who/cgroup_path.hpp"
#include "who/host_files.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// Empty fields are unknown. The texts are limited in length, but users who run containers control them: escape them
// with printable() for output.
struct ContainerNames {
    std::string container; // from the pod's specification, or given by the user; empty for a sandbox
    std::string pod;
    std::string pod_namespace;
    std::string pod_uid;
    std::string runtime; // "docker", "containerd", "cri-o", "podman"
    std::string image;
    bool sandbox = false;              // true for the pause container of a Kubernetes pod
    std::string visible_devices{};     // NVIDIA_VISIBLE_DEVICES in the container's configuration
    std::vector<uint32_t> gpu_files{}; // N of each /dev/nvidiaN in the container
    std::vector<uint32_t> cap_files{}; // N of each /dev/nvidia-caps/nvidia-capN in the container
    std::vector<std::string> labels{}; // KEY=VALUE, as set by users on the container or its pod

    bool operator==(const ContainerNames&) const = default;
};

// Reader of the runtimes' files. Every call reads the disk, so callers should cache results that do not change while a
// container runs. Containers in a kind node are recorded on the node's disk; to find them, pass the node's
// /proc/PID/root as host_root.
class Containers {
public:
    explicit Containers(const std::string& host_root); // "/", or the mount point of the host's root

    // If a user named the container, reads only the files in that user's home, and returns neither pod nor labels.
    ContainerNames find(const CgroupOwner& owner) const;

    // Ids in the names of a pod's cgroups. Both sets are empty if the pod is not on this host.
    struct Pod {
        std::set<std::string> uids, container_ids; // container_ids may include sandboxes and exited containers
    };
    Pod find_pod(std::string_view pod_namespace, std::string_view name) const;

    // Containers with this name in docker, podman or nerdctl (--name), whether root or another user runs them.
    struct Named {
        std::string id;              // the full id
        std::optional<uint32_t> uid; // the user who runs it, if not root
        auto operator<=>(const Named&) const = default;
    };
    std::set<Named> find_named(std::string_view name) const;

private:
    HostFiles host_;
};

// Messages between ContainerLookup and its helper. A request is a CgroupOwner, and the reply is a ContainerAnswer.
void fields(auto& each, same_as_const<CgroupOwner> auto& o)
{
    each(o.runtime, o.container_id, o.node_id, o.pod_uid, o.unit, o.uid, o.slurm_job, o.slurm_step, o.named_by_user);
}

void fields(auto& each, same_as_const<ContainerNames> auto& n)
{
    each(n.container, n.pod, n.pod_namespace, n.pod_uid, n.runtime, n.image, n.sandbox, n.visible_devices, n.gpu_files,
         n.cap_files, n.labels);
}

struct ContainerAnswer {
    CgroupOwner owner;
    ContainerNames names;
};

void fields(auto& each, same_as_const<ContainerAnswer> auto& a)
{
    each(a.owner, a.names);
}

// Runs Containers::find() in a helper, because users control some of the records, and reading the disk may hang.
class ContainerLookup {
public:
    explicit ContainerLookup(const std::string& host_root, WaitBudget* waits = nullptr); // waits: see Reader::Reader()

    // Returns nullopt if the helper has not replied yet; call it again later.
    std::optional<ContainerNames> find(const CgroupOwner& owner);

private:
    bool apply(const Message& message);

    // Replies that find() has not returned yet. The key is the whole owner, because users can put any container's id
    // into the names of their cgroups.
    std::map<CgroupOwner, ContainerNames> answers_;
    Reader reader_;
};

} // namespace gpusnoop
