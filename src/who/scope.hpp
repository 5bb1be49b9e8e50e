// SPDX-License-Identifier: Apache-2.0
// The processes that the options select: the processes given with -p or -t, a program started by the tool and its
// descendants, the processes in the cgroup given with -c, the processes named by -n, or all.
#pragma once

#include "base/fd.hpp"
#include "base/options.hpp"
#include "who/cgroup.hpp"
#include "who/processes.hpp"

#include <map>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

class Scope {
public:
    // Throws Error if a target does not exist.
    explicit Scope(const Options& options);

    bool is_unfiltered() const { return pids_.empty() && !cgroup_ && !named_; }
    const std::vector<pid_t>& pids() const { return pids_; } // processes selected by pid, or started; sorted
    const std::optional<CgroupTarget>& cgroup() const { return cgroup_; }
    // Set if -n is the only filter and one of its processes maps CUDA. Otherwise, only the kernel side filters by name.
    const std::optional<NamedProcesses>& named() const { return named_; }
    std::optional<NamedProcesses>& named() { return named_; }
    // True if processes may be added later.
    bool is_open() const { return cgroup_ || named_ || grows_; }

    // True if the tool starts a program, whose descendants are added.
    bool grows() const { return grows_; }
    void join(pid_t pid);
    void leave(pid_t pid);

    // Whether the process is selected now. The members of a cgroup change.
    bool includes(pid_t pid) const;
    std::vector<pid_t> processes() const;

    const std::map<pid_t, Fd>& pidfds() const { return pidfds_; } // of those pids() that have not exited
    // To be called when a process in pids() has exited. Removes its pid, which may be reused, and returns true. If it
    // is the last process, keeps the pid and returns false, because an empty list would select all processes.
    bool on_exit(pid_t pid);

private:
    void select_by_name(const std::string& part);

    std::vector<pid_t> pids_;
    std::map<pid_t, Fd> pidfds_;
    bool grows_;
    std::optional<CgroupTarget> cgroup_;
    std::optional<NamedProcesses> named_;
};

} // namespace gpusnoop
