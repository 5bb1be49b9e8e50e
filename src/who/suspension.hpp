// SPDX-License-Identifier: Apache-2.0
// What keeps a thread from running, whatever it waits for: a stop by a signal or debugger, or the freezer of its
// cgroup.
#pragma once

#include "who/cgroup_facts.hpp"

#include <string>
#include <sys/types.h>

namespace gpusnoop {

class Suspensions {
public:
    explicit Suspensions(const std::string& host_root) : cgroups_(cgroup_mounts(host_root)) {}

    // "stopped by a signal", "stopped by its debugger or tracer, gdb 4711", "frozen by cgroup /batch/17"; empty: it is
    // not suspended, or has ended.
    std::string of(pid_t pid, pid_t tid) const;

private:
    CgroupFiles cgroups_;
};

} // namespace gpusnoop
