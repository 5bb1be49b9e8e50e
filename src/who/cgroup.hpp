// SPDX-License-Identifier: Apache-2.0
// The cgroups of containers, pods and jobs, and those that -c asks for.
#pragma once

#include "base/fd.hpp"
#include "who/cgroup_mounts.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Of a container, of a pod, or of a step of a Slurm job.
struct ContainerCgroup {
    uint64_t id = 0; // as the kernel side has it
    std::string path;
    CgroupOwner owner;
    pid_t process = 0; // of a step, the first one in it; 0: there is none
};
// Those that are there now, the outermost of nested ones; of the first hierarchy that has some that users did not name.
std::vector<ContainerCgroup> container_cgroups(const std::string& host_root);

// What -c asks for: one cgroup, or those of a pod that has several; what lies below belongs to it.
class CgroupTarget {
public:
    // A path, a path below a mount, a container id or its beginning, a container's name, or pod:NAMESPACE/NAME. A
    // container that a user has named counts if root has named none like that. Throws Error where there is none of this
    // name, or more than one; UsageError where it can be no name.
    CgroupTarget(const std::string& what, const std::string& host_root);

    const std::string& what() const { return what_; } // as it was asked for
    const std::vector<std::string>& paths() const { return paths_; }
    bool v2() const { return mount_.v2; }
    cgroup_controller controller() const { return mount_.controller; }
    const std::vector<uint64_t>& ids() const { return ids_; } // as the kernel side has them
    std::vector<pid_t> members() const;                       // processes in it now
    bool is_removed() const;                                  // all of its cgroups have been removed

private:
    bool find_path(const std::vector<CgroupMount>& mounts);
    void find_pod(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    bool find_container(const std::vector<CgroupMount>& mounts, const std::string& host_root);
    void take(const CgroupMount& mount, std::vector<std::string> paths);

    std::string what_;
    CgroupMount mount_;
    std::vector<std::string> paths_;
    std::vector<Fd> directories_; // held, so that one of the same name made later is not taken for it
    std::vector<uint64_t> ids_;
};

} // namespace gpusnoop
