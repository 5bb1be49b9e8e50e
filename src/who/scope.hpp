// SPDX-License-Identifier: Apache-2.0
// The processes selected by the options: those of -p and -t, a program started by the tool and its children, those in
// the cgroup of -c, those of -n alone, or all.
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
    const std::vector<pid_t>& pids() const { return pids_; } // selected one by one; sorted
    const std::optional<CgroupTarget>& cgroup() const { return cgroup_; }
    // Set if -n is the only filter and one of its processes maps CUDA. Otherwise, only the BPF side filters by name.
    const std::optional<NamedProcesses>& named() const { return named_; }
    std::optional<NamedProcesses>& named() { return named_; }
    // Processes may join later.
    bool is_open() const { return cgroup_ || named_ || grows_; }

    // The tool has started a program: the children of its processes join.
    bool grows() const { return grows_; }
    void join(pid_t pid);
    void leave(pid_t pid);

    // At this moment: the members of a cgroup change.
    bool includes(pid_t pid) const;
    std::vector<pid_t> processes() const;

    const std::map<pid_t, Fd>& pidfds() const { return pidfds_; } // of pids() that have not exited
    // A process of pids() has exited; its pid may be reused. Returns false if it was the last one, which stays: an
    // empty list would select all processes.
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
