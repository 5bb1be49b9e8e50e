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
    bool nodes = true;                    // containers may be Kubernetes nodes; false if the host itself runs pods
};

// The owner of a cgroup, from its path. Empty fields are unknown. Names chosen by root are trusted. Names chosen by a
// user identify only that user's own containers and units. Cgroups created inside of a container belong to the
// container, except for the pods of a Kubernetes node that runs in a container of root (kind, k3d, minikube).
struct CgroupOwner {
    std::string runtime;         // "docker", "containerd", "cri-o", "podman"; empty if the path does not show it
    std::string container_id;    // the full id, of characters [0-9a-f-]
    std::string node_id;         // id of the container that is the Kubernetes node of this container's pod (kind)
    std::string pod_uid;         // with dashes, or the 32 hex digits of a static pod
    std::string unit;            // innermost systemd service or scope that is not a container; escapes are kept
    std::optional<uint32_t> uid; // from user-U.slice or Slurm v1's uid_U, or the user who controls the names
    std::string slurm_job;       // "1234", or "1234_7" in an array and "1234+1" in a heterogeneous job
    std::string slurm_step;      // "0", "batch", "extern", "interactive"
    bool named_by_user = false;  // the user `uid` chose the name of the container or unit

    auto operator<=>(const CgroupOwner&) const = default;
};

// path: third field of /proc/PID/cgroup, or a path relative to the cgroup mount. Accepts any bytes, in linear time.
// Cgroups that systemd delegates to users (user@U.service) are recognized even if `delegation` is empty.
CgroupOwner parse_cgroup_path(std::string_view path, const Delegation& delegation = {});

// A cgroup and its owner.
struct CgroupPlace {
    std::string path; // relative to its hierarchy's root
    CgroupOwner owner;
};

} // namespace gpusnoop
