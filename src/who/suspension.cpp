// SPDX-License-Identifier: Apache-2.0
#include "who/suspension.hpp"

#include "proc/process.hpp"
#include "proc/thread_state.hpp"

#include <fmt/format.h>

namespace gpusnoop {

std::string Suspensions::of(pid_t pid, pid_t tid) const
{
    const auto [state, tracer] = thread_state(pid, tid);
    if (state == 'T')
        return "stopped by a signal";
    if (state == 't') {
        const std::string name = tracer ? process_name(tracer).value_or("") : "";
        return "stopped by its debugger or tracer" + (name.empty() ? "" : fmt::format(", {} {}", name, tracer));
    }
    if (state != 'S' && state != 'D')
        return {};
    const std::string cgroup = cgroups_.frozen_by(cgroup_lines(pid));
    return cgroup.empty() ? std::string() : "frozen by cgroup " + cgroup;
}

} // namespace gpusnoop
