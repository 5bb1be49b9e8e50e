// SPDX-License-Identifier: Apache-2.0
#include "attach/culprits.hpp"

#include "proc/process.hpp"

#include <fmt/format.h>

namespace gpusnoop {

bool Culprits::include(pid_t pid) const
{
    if (!hanging_.empty() && hanging_.contains({pid, start_time_ns(pid)}))
        return true;
    if (strikes_.empty())
        return false;
    const auto strikes = strikes_.find(owner_of(pid).value_or(0));
    return strikes != strikes_.end() && strikes->second >= strikes_max;
}

void Culprits::strike(pid_t pid, std::string_view what, std::string_view why)
{
    const auto owner = owner_of(pid);
    if (!owner)
        return; // it ended in the middle
    complaints_.add(fmt::format("{} (process {}): {}; it is not traced", what, pid, why));
    if (++strikes_[*owner] == strikes_max)
        complaints_.add(
            fmt::format("files of the user of process {} have stopped {} helpers: no other one of them is traced", pid,
                        strikes_max));
}

void Culprits::hangs(pid_t pid)
{
    hanging_.emplace(pid, start_time_ns(pid));
}

} // namespace gpusnoop
