// SPDX-License-Identifier: Apache-2.0
// Parser of cgroup paths: finds the container, pod, systemd unit, user and Slurm job in the names that runtimes use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// The part of a cgroup's path that users control: a user who may create cgroups in a directory chooses the names in it.
struct Delegation {
    size_t from = std::string_view::npos; // names after this offset in the path were chosen by users
    std::optional<uint32_t> uid;          // nullopt: unknown, or several users
    bool nodes = true;                    // whether containers may be Kubernetes nodes; false if the host runs pods
};

// The owner of a cgroup, as its path shows it. Empty fields are unknown. Names chosen by root are trusted. Names chosen
// by a user identify only that user's own containers and units. Cgroups created inside of a container belong to that
// container, unless it is a Kubernetes node run by root (kind, k3d, minikube). Cgroups of such a node's pods belong to
// the pods.
struct CgroupOwner {
    std::string runtime;         // "docker", "containerd", "cri-o", "podman"; empty if the path does not show it
    std::string container_id;    // the full id, of characters [0-9a-f-]
    std::string node_id;         // id of the Kubernetes node, if the node is itself a container (kind)
    std::string pod_uid;         // with dashes, or the 32 hex digits of a static pod
    std::string unit;            // innermost systemd service or scope that is not a container; escaped by systemd
    std::optional<uint32_t> uid; // U of user-U.slice or of Slurm's uid_U (v1), or the user who chose the names
    std::string slurm_job;       // "1234"; "1234_7" in an array; "1234+1" in a heterogeneous job
    std::string slurm_step;      // "0", "batch", "extern", "interactive"
    bool named_by_user = false;  // true if the user `uid` chose the container's or unit's name

    auto operator<=>(const CgroupOwner&) const = default;
};

// path: third field of /proc/PID/cgroup, or a path relative to the cgroup mount. It may contain any bytes.
// Cgroups that systemd delegates to users (user@U.service) are recognized even if `delegation` is empty.
CgroupOwner parse_cgroup_path(std::string_view path, const Delegation& delegation = {});

// A cgroup and its owner.
struct CgroupPlace {
    std::string path; // relative to its hierarchy's root
    CgroupOwner owner;
};

} // namespace gpusnoop
