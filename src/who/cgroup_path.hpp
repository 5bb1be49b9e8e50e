// SPDX-License-Identifier: Apache-2.0
// Container, pod, unit, user and Slurm job by the names that runtimes give to cgroups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// What the path of a cgroup says about who runs in it. Empty: it says nothing. It is the word of whoever may make
// cgroups there: the user below user@U.service, the container below its own scope.
struct CgroupOwner {
    std::string runtime;         // "docker", "containerd", "cri-o", "podman"; empty where the path does not tell
    std::string container_id;    // of the innermost container, in full: [0-9a-f-]
    std::string node_id;         // of the outermost one where containers are nested (kind, docker in docker)
    std::string pod_uid;         // with dashes, or the 32 hex digits of a static pod; the innermost one
    std::string unit;            // innermost systemd service or scope that is no container's, escapes as they are
    std::optional<uint32_t> uid; // of user-U.slice, or Slurm v1's uid_U; not of those inside a container
    std::string slurm_job;       // "1234", also array and het forms as the path has them
    std::string slurm_step;      // "0", "batch", "extern", "interactive"

    bool operator==(const CgroupOwner&) const = default;
};

// Takes /proc/PID/cgroup's third field, or a path below the cgroup mount. Any bytes, linear time.
CgroupOwner parse_cgroup_path(std::string_view path);

} // namespace gpusnoop
