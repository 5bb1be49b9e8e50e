// SPDX-License-Identifier: Apache-2.0
// Processes that the options select: by pid (-p) or thread (-t), in a cgroup (-c), by name (-n), a program that the
// tool starts and its descendants, or all processes.
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
    const std::vector<pid_t>& pids() const { return pids_; } // processes selected by pid or started by the tool; sorted
    const std::optional<CgroupTarget>& cgroup() const { return cgroup_; }
    // The processes selected by -n. Set only if -n is the only filter and a process with that name had mapped CUDA when
    // the tool started. If it is not set, only the kernel side filters by name.
    const std::optional<NamedProcesses>& named() const { return named_; }
    std::optional<NamedProcesses>& named() { return named_; }
    // True if processes may be added later.
    bool is_open() const { return cgroup_ || named_ || grows_; }

    // True if the tool starts a program, whose descendants are added.
    bool grows() const { return grows_; }
    void join(pid_t pid);
    void leave(pid_t pid);

    // True if the process is selected now. The result may change, because processes move between cgroups.
    bool includes(pid_t pid) const;
    std::vector<pid_t> processes() const;

    const std::map<pid_t, Fd>& pidfds() const { return pidfds_; } // pidfds of processes in pids() that have not exited
    // Must be called when a process in pids() has exited. Removes the pid, because it may be reused, and returns true.
    // If no other process is left, keeps the pid and returns false, because an empty list would select all processes.
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
