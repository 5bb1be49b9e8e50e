// SPDX-License-Identifier: Apache-2.0
// Which processes a run is about: those of -p and -t, a program that the tool has started and its children, those in
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
    // Throws Error where what was asked for does not exist.
    explicit Scope(const Options& options);

    bool is_unfiltered() const { return pids_.empty() && !cgroup_ && !named_; }
    const std::vector<pid_t>& pids() const { return pids_; } // asked for one by one; sorted
    const std::optional<CgroupTarget>& cgroup() const { return cgroup_; }
    // Where a name is all that was asked for, and some process has it that maps CUDA; else it is only looked at in the
    // kernel.
    const std::optional<NamedProcesses>& named() const { return named_; }
    std::optional<NamedProcesses>& named() { return named_; }
    // Others may become those asked for.
    bool is_open() const { return cgroup_ || named_ || grows_; }

    // Of a program that the tool has started: what it forks is asked for, too.
    bool grows() const { return grows_; }
    void join(pid_t pid);
    void leave(pid_t pid);

    // Now: members of a cgroup come and go.
    bool includes(pid_t pid) const;
    std::vector<pid_t> processes() const;

    const std::map<pid_t, Fd>& pidfds() const { return pidfds_; } // of pids() that have not ended
    // One of pids() has: its number may be another one's next. False where it was the last, which stays: without any,
    // everybody would be asked for.
    bool on_exit(pid_t pid);

private:
    void look_for_named(const std::string& part);

    std::vector<pid_t> pids_;
    std::map<pid_t, Fd> pidfds_;
    bool grows_;
    std::optional<CgroupTarget> cgroup_;
    std::optional<NamedProcesses> named_;
};

} // namespace gpusnoop
