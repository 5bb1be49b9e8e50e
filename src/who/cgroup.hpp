// SPDX-License-Identifier: Apache-2.0
// Search for the cgroups of containers, pods and jobs, and for the cgroups that -c selects.
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
    uint64_t id = 0; // cgroup id, as the kernel side reports it
    std::string path;
    CgroupOwner owner;
    pid_t process = 0; // first process of a Slurm step; 0: none, or not a step
};
// Returns the outermost container cgroups that exist now. All are from one hierarchy: the first that has containers of
// root. If no hierarchy has any, it is the first that has containers of users.
std::vector<ContainerCgroup> container_cgroups(const std::string& host_root);

// The target of -c: one cgroup, or all cgroups of a pod, with the cgroups below them.
class CgroupTarget {
public:
    // argument: a path, a path relative to a mount, a container's name, the beginning of a container's id, or
    // pod:NAMESPACE/NAME. Containers of users match only if none of root's containers matches. Throws Error if no
    // cgroup or several containers match, and UsageError if the argument is malformed.
    CgroupTarget(const std::string& argument, const std::string& host_root);

    const std::string& argument() const { return argument_; }
    const std::vector<std::string>& paths() const { return paths_; }
    bool v2() const { return mount_.v2; }
    cgroup_controller controller() const { return mount_.controller; }
    const std::vector<uint64_t>& ids() const { return ids_; } // cgroup ids, as the kernel side reports them
    std::vector<pid_t> members() const;                       // processes in the cgroups now
    bool is_removed() const;                                  // true if all selected cgroups have been removed

private:
    bool find_path(const std::vector<CgroupMount>& mounts);
    void find_pod(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    bool find_container(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    void set_cgroups(const CgroupMount& mount, std::vector<std::string> paths);

    std::string argument_;
    CgroupMount mount_;
    std::vector<std::string> paths_;
    std::vector<Fd> directories_; // kept open, to detect removal even if a new cgroup has the same path
    std::vector<uint64_t> ids_;
};

} // namespace gpusnoop
