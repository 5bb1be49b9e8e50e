// SPDX-License-Identifier: Apache-2.0
// Parser of cgroup paths: finds the container, pod, systemd unit, user and Slurm job in the names that runtimes use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// The part of a cgroup's path that users control. A user who may create cgroups in a directory chooses the names in it.
struct Delegation {
    size_t from = std::string_view::npos; // offset in the path; names after it were chosen by the user
    std::optional<uint32_t> uid;          // nullopt: unknown, or several users
    bool nodes = true;                    // a container may be a Kubernetes node, as the host has no pods of its own
};

// The owner of a cgroup, from its path; empty fields are unknown. Names chosen by root are trusted. Names chosen by a
// user identify only that user's own containers and units. Cgroups that a container has created belong to the
// container, except for pods of a Kubernetes node that runs in a container of root's (kind, k3d, minikube).
struct CgroupOwner {
    std::string runtime;         // "docker", "containerd", "cri-o", "podman"; empty if the path does not show it
    std::string container_id;    // the full id: [0-9a-f-]
    std::string node_id;         // the container that is the node of this container's pod (kind)
    std::string pod_uid;         // with dashes, or the 32 hex digits of a static pod
    std::string unit;            // innermost systemd service or scope that is not a container's; escapes are kept
    std::optional<uint32_t> uid; // from user-U.slice or Slurm v1's uid_U, or the user who controls the names
    std::string slurm_job;       // "1234"; array and heterogeneous jobs as in the path
    std::string slurm_step;      // "0", "batch", "extern", "interactive"
    bool named_by_user = false;  // the user `uid` chose the name of the container or unit

    auto operator<=>(const CgroupOwner&) const = default;
};

// path: third field of /proc/PID/cgroup, or a path below the cgroup mount. Accepts any bytes; takes linear time.
// Cgroups that systemd delegates to users (user@U.service) are recognized even without a delegation.
CgroupOwner parse_cgroup_path(std::string_view path, const Delegation& delegation = {});

// A cgroup and its owner.
struct CgroupPlace {
    std::string path; // below its hierarchy's root
    CgroupOwner owner;
};

} // namespace gpusnoop
