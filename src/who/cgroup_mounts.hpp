// SPDX-License-Identifier: Apache-2.0
// The cgroup hierarchies of this host: where they are mounted, and which names in them are root's.
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
    std::string root; // the cgroup that is mounted there; "/" but in containers
    bool v2 = false;
    cgroup_controller controller = CONTROLLER_NONE; // of a v1 hierarchy; none where the kernel side cannot look at it
    bool operator==(const CgroupMount&) const = default;
};

// From the text of a mountinfo file, one mount per hierarchy, those below host_root: v2 first, then v1 in the order in
// which the kernel side prefers them.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& host_root);
std::vector<CgroupMount> cgroup_mounts(const std::string& host_root);

// The hierarchy that stands for v1 where rows are labelled; none where v1 is not mounted.
cgroup_controller v1_controller(const std::vector<CgroupMount>& mounts);

// The host has a kubelet: then no container is the node of pods (Delegation::nodes).
bool has_pods(const std::vector<CgroupMount>& mounts);

// True for the folder itself, too.
bool is_below(const std::string& path, const std::string& folder);

// Of the names below the cgroup whose path has `from` bytes, if users may create cgroups in it.
Delegation delegation_by(const struct stat& cgroup, size_t from);

// The cgroups of a process, v2 first; lines: /proc/PID/cgroup. A name is root's if root alone may create cgroups in the
// directory that it is in. Without a mount of the hierarchy, the path has to do (parse_cgroup_path()).
struct ProcessCgroups {
    CgroupPlace v2;
    std::vector<CgroupPlace> v1;
};
ProcessCgroups cgroups_of(std::string_view lines, const std::vector<CgroupMount>& mounts);

} // namespace gpusnoop
