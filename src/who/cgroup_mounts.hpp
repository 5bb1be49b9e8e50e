// SPDX-License-Identifier: Apache-2.0
// Cgroup hierarchies of this host: their mounts, and the parts of their paths that users control.
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
    cgroup_controller controller = CONTROLLER_NONE; // of v1; CONTROLLER_NONE if the kernel side cannot read it
    bool operator==(const CgroupMount&) const = default;
};

// Mounts below host_root, one per hierarchy: v2 first, then v1 in the order that the kernel side prefers. mountinfo:
// text of /proc/PID/mountinfo.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& host_root);
// The mounts that this process sees below host_root, or all of them if there are none below it.
std::vector<CgroupMount> cgroup_mounts(const std::string& host_root);

// The v1 hierarchy from which rows get their owners; CONTROLLER_NONE if v1 is not mounted.
cgroup_controller v1_controller(const std::vector<CgroupMount>& mounts);

// True if the host runs a kubelet. Then no container is a node (Delegation::nodes).
bool has_pods(const std::vector<CgroupMount>& mounts);

// True for paths below the folder, and for the folder itself.
bool is_below(const std::string& path, const std::string& folder);

// The delegation of the names below a cgroup; empty if only root may create cgroups in it. from: length of its path.
Delegation delegation_by(const struct stat& cgroup, size_t from);

// The cgroups of a process. lines: text of /proc/PID/cgroup. A name was chosen by root if only root may create cgroups
// in its parent directory. If the hierarchy is not mounted, the path alone must show that (parse_cgroup_path()).
struct ProcessCgroups {
    CgroupPlace v2;
    std::vector<CgroupPlace> v1;
};
ProcessCgroups cgroups_of(std::string_view lines, const std::vector<CgroupMount>& mounts);

} // namespace gpusnoop
