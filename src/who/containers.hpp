// SPDX-License-Identifier: Apache-2.0
// Names of containers and pods, from files that their runtimes keep on the host: no sockets, no API server.
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

// Empty: unknown. Bounded in length, but controlled by the users who run the containers: show them with printable().
struct ContainerNames {
    std::string container; // from the pod's specification or the user; a sandbox has none
    std::string pod;
    std::string pod_namespace;
    std::string pod_uid;
    std::string runtime; // "docker", "containerd", "cri-o", "podman"
    std::string image;
    bool sandbox = false;              // the pause container that holds the namespaces of a Kubernetes pod
    std::string visible_devices{};     // NVIDIA_VISIBLE_DEVICES in its configuration
    std::vector<uint32_t> gpu_files{}; // N of each /dev/nvidiaN in it
    std::vector<uint32_t> cap_files{}; // N of each /dev/nvidia-caps/nvidia-capN in it
    std::vector<std::string> labels{}; // KEY=VALUE, set by users on the container or its pod

    bool operator==(const ContainerNames&) const = default;
};

// Every call reads the disk; callers keep what does not change while a container runs. Containers inside of a kind node
// are recorded on the node's disk: a Containers object with the node's /proc/PID/root finds them.
class Containers {
public:
    explicit Containers(const std::string& host_root); // "/", or the mount point of the host's root

    // For a container named by a user, reads only the files in that user's home, and returns neither pod nor labels.
    ContainerNames find(const CgroupOwner& owner) const;

    // Ids by which the cgroups of a pod are found. Empty if there is no such pod on this host.
    struct Pod {
        std::set<std::string> uids, container_ids; // may include sandboxes and ended containers
    };
    Pod find_pod(std::string_view pod_namespace, std::string_view name) const;

    // Containers of root and of users that have this name in docker, podman or nerdctl (--name).
    struct Named {
        std::string id;              // the full id
        std::optional<uint32_t> uid; // the user whose home has the record; nullopt: recorded on the host
        auto operator<=>(const Named&) const = default;
    };
    std::set<Named> find_named(std::string_view name) const;

private:
    HostFiles host_;
};

// Messages between ContainerLookup and its helper. A question is a CgroupOwner and has one answer.
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

// Runs Containers::find() in a helper: users control parts of the records, some are in users' homes, and the disk may
// hang.
class ContainerLookup {
public:
    explicit ContainerLookup(const std::string& host_root, WaitBudget* waits = nullptr); // see Reader

    // nullopt: there is no answer yet, call again.
    std::optional<ContainerNames> find(const CgroupOwner& owner);

private:
    bool apply(const Message& message);

    // Not returned by find() yet. The key is the whole owner, because users can give their cgroups any container's id.
    std::map<CgroupOwner, ContainerNames> answers_;
    Reader reader_;
};

} // namespace gpusnoop
