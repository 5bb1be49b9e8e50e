// SPDX-License-Identifier: Apache-2.0
// Cgroups of containers, pods and jobs, and the cgroups selected by -c.
#pragma once

#include "base/fd.hpp"
#include "who/cgroup_mounts.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// The cgroup of a container, a pod or a step of a Slurm job.
struct ContainerCgroup {
    uint64_t id = 0; // the id that the kernel side reports
    std::string path;
    CgroupOwner owner;
    pid_t process = 0; // for a Slurm step, its first process; 0: none
};
// The outermost container cgroups that exist now, from one hierarchy: the first that has containers not named by users,
// else the first that has any.
std::vector<ContainerCgroup> container_cgroups(const std::string& host_root);

// The target of -c: one cgroup, or all cgroups of a pod, with the cgroups below them.
class CgroupTarget {
public:
    // argument: a path, a path below a mount, a container id or its beginning, a container's name, or
    // pod:NAMESPACE/NAME. Users' containers are considered only if none of root's containers matches. Throws Error if
    // nothing or more than one container matches; UsageError if the argument is malformed.
    CgroupTarget(const std::string& argument, const std::string& host_root);

    const std::string& argument() const { return argument_; }
    const std::vector<std::string>& paths() const { return paths_; }
    bool v2() const { return mount_.v2; }
    cgroup_controller controller() const { return mount_.controller; }
    const std::vector<uint64_t>& ids() const { return ids_; } // the ids that the kernel side reports
    std::vector<pid_t> members() const;                       // processes that are in the cgroups now
    bool is_removed() const;                                  // all of its cgroups have been removed

private:
    bool find_path(const std::vector<CgroupMount>& mounts);
    void find_pod(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    bool find_container(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    void set_cgroups(const CgroupMount& mount, std::vector<std::string> paths);

    std::string argument_;
    CgroupMount mount_;
    std::vector<std::string> paths_;
    std::vector<Fd> directories_; // kept open, so that new cgroups of the same names are not mistaken for them
    std::vector<uint64_t> ids_;
};

} // namespace gpusnoop
