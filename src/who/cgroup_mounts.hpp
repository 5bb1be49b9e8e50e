// SPDX-License-Identifier: Apache-2.0
// Finds the mounted cgroup hierarchies of this host, and the parts of cgroup paths that users control.
#pragma once

#include "bpf/shared/process.h"
#include "who/cgroup_path.hpp"

#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace gpusnoop {

struct CgroupMount {
    std::string path; // the mount point
    std::string root; // the cgroup mounted there; "/" except in containers
    bool v2 = false;
    cgroup_controller controller = CONTROLLER_NONE; // CONTROLLER_NONE: v2, or not supported by the kernel side
    bool operator==(const CgroupMount&) const = default;
};

// Returns the mounts below host_root, one per hierarchy: v2 first, then v1 in the kernel side's order of preference.
// mountinfo: text of /proc/PID/mountinfo.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& host_root);
// Returns the mounts below host_root that this process sees. If there are none, returns all mounts that it sees.
std::vector<CgroupMount> cgroup_mounts(const std::string& host_root);

// Returns the controller of the v1 hierarchy that identifies owners; CONTROLLER_NONE if v1 is not mounted.
cgroup_controller v1_controller(const std::vector<CgroupMount>& mounts);

// True if the host itself runs pods. Its containers are then not Kubernetes nodes (Delegation::nodes).
bool has_pods(const std::vector<CgroupMount>& mounts);

// True if the path is the folder, or is below it.
bool is_below(const std::string& path, const std::string& folder);

// Returns which user, if any, can choose the names of cgroups below this one; empty if only root may create cgroups in
// it. from: length of the cgroup's path, for Delegation::from.
Delegation delegation_by(const struct stat& cgroup, size_t from);

// The cgroups of a process. lines: text of /proc/PID/cgroup. A cgroup name counts as chosen by root if only root may
// create cgroups in its parent directory. If the hierarchy is not mounted, these permissions are unknown. Names then
// count as chosen by users only below cgroups that systemd delegates to users (see parse_cgroup_path()).
struct ProcessCgroups {
    CgroupPlace v2;
    std::vector<CgroupPlace> v1;
};
ProcessCgroups cgroups_of(std::string_view lines, const std::vector<CgroupMount>& mounts);

} // namespace gpusnoop
