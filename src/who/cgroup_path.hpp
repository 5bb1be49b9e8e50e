// SPDX-License-Identifier: Apache-2.0
// Container, pod, unit, user and Slurm job by the names that runtimes give to cgroups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// How much of a cgroup's path root has named. The user who may create cgroups in a directory names those in it.
struct Delegation {
    size_t from = std::string_view::npos; // bytes of the path; the names behind them are the user's
    std::optional<uint32_t> uid;          // nullopt: not known, or several users
    bool nodes = true;                    // a container may be a node: the host has no pods of its own
};

// The owner of a cgroup by its path; empty fields: not known. Names that root gave are trusted. Those that a user gave
// name that user's own containers and units only. What a container created below its cgroup is the container's, but for
// the pods of a node that is itself a container of root's, on a host without a kubelet (kind, k3d, minikube).
struct CgroupOwner {
    std::string runtime;         // "docker", "containerd", "cri-o", "podman"; empty where the path does not tell
    std::string container_id;    // in full: [0-9a-f-]
    std::string node_id;         // the container that is the node of this one's pod (kind)
    std::string pod_uid;         // with dashes, or the 32 hex digits of a static pod
    std::string unit;            // innermost systemd service or scope that is no container's, escapes as they are
    std::optional<uint32_t> uid; // of user-U.slice, of Slurm v1's uid_U, or of the user that names were delegated to
    std::string slurm_job;       // "1234", also array and het forms as the path has them
    std::string slurm_step;      // "0", "batch", "extern", "interactive"
    bool named_by_user = false;  // the user uid named the container, or the unit

    auto operator<=>(const CgroupOwner&) const = default;
};

// Takes /proc/PID/cgroup's third field, or a path below the cgroup mount. Any bytes, linear time. What systemd
// delegates to users (user@U.service) is recognized without a delegation, too.
CgroupOwner parse_cgroup_path(std::string_view path, const Delegation& delegation = {});

// A cgroup and its owner.
struct CgroupPlace {
    std::string path; // below its hierarchy's root
    CgroupOwner owner;
};

} // namespace gpusnoop
