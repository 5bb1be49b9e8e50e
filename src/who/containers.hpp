// SPDX-License-Identifier: Apache-2.0
// Names of containers and pods by what their runtimes leave on the host's disk: no sockets, no API server.
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

// Empty: not known. Bounded in length, but not printable as they are: whoever runs a container may have chosen them.
struct ContainerNames {
    std::string container; // as the pod's specification or the one who ran it named it; a sandbox has none
    std::string pod;
    std::string pod_namespace;
    std::string pod_uid;
    std::string runtime; // "docker", "containerd", "cri-o", "podman"
    std::string image;
    bool sandbox = false;              // the pause container that holds the namespaces of a Kubernetes pod
    std::string visible_devices{};     // NVIDIA_VISIBLE_DEVICES of its configuration
    std::vector<uint32_t> gpu_files{}; // N of each /dev/nvidiaN in it
    std::vector<uint32_t> cap_files{}; // N of each /dev/nvidia-caps/nvidia-capN in it
    std::vector<std::string> labels{}; // KEY=VALUE: of it, or of its pod, that somebody has given them

    bool operator==(const ContainerNames&) const = default;
};

// Reads the disk anew at every call; what does not change for a container's life is the caller's to keep. Containers
// inside a kind node are on that node's disk: another Containers with the node's /proc/PID/root finds them.
class Containers {
public:
    explicit Containers(const std::string& host_root); // "/" or where the host's root is mounted

    // Of a container that a user has named, the files in that user's home: they name no pod and carry no labels.
    ContainerNames find(const CgroupOwner& owner) const;

    // Where a pod's processes are. Empty sets where no such pod is on this host.
    struct Pod {
        std::set<std::string> uids, container_ids; // sandboxes and containers that ended may be among them
    };
    Pod find_pod(std::string_view pod_namespace, std::string_view name) const;

    // Containers that docker, podman or nerdctl run under this name (--name), root's and users'.
    struct Named {
        std::string id;              // in full
        std::optional<uint32_t> uid; // of the user in whose home it is recorded; nullopt: on the host
        auto operator<=>(const Named&) const = default;
    };
    std::set<Named> find_named(std::string_view name) const;

private:
    HostFiles host_;
};

// What ContainerLookup and its helper tell each other. A question has one answer each.

// The question.
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
    CgroupOwner of;
    ContainerNames names;
};

void fields(auto& each, same_as_const<ContainerAnswer> auto& a)
{
    each(a.of, a.names);
}

// Containers::find(), by a helper: records of containers are in parts the word of those who run them, they may be in a
// user's home, and the disk they are on may hang.
class ContainerLookup {
public:
    explicit ContainerLookup(const std::string& host_root, WaitBudget* waits = nullptr); // see Reader

    // nullopt where there is no answer yet: ask again.
    std::optional<ContainerNames> find(const CgroupOwner& owner);

private:
    bool apply(const Message& message);

    // Not taken yet. By the whole owner: users can give their cgroups the id of a container of root's.
    std::map<CgroupOwner, ContainerNames> answers_;
    Reader reader_;
};

} // namespace gpusnoop
