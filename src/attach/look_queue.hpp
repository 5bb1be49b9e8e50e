// SPDX-License-Identifier: Apache-2.0
// Processes whose mappings are to be looked at. A process decides how long a look at it takes and how often there is
// cause for one. Each may take some of our time at once, as one does that loads PyTorch, and then a small share of it,
// so that others are seen as soon as they come.
#pragma once

#include "base/time_accounts.hpp"

#include <map>
#include <optional>
#include <sys/types.h>

namespace gpusnoop {

class LookQueue {
public:
    using Clock = TimeAccounts<pid_t>::Clock;

    // At once or, where it has taken too much time, later.
    void add(pid_t pid, Clock::time_point now);

    // The next one that is due.
    std::optional<pid_t> next(Clock::time_point now);

    // To be called after each look.
    void looked(pid_t pid, Clock::duration took, Clock::time_point now);

private:
    static constexpr int share = 20; // behind what it may take at once, one part of so many of the time

    std::map<pid_t, Clock::time_point> due_;
    TimeAccounts<pid_t> taken_{share};
};

} // namespace gpusnoop
