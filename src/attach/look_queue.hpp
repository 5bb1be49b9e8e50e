// SPDX-License-Identifier: Apache-2.0
// Processes whose mappings are to be looked at. A process decides how long a look at it takes and how often there is
// cause for one. Each may take some of our time at once, as one does that loads PyTorch, and then a small share of it,
// so that others are seen as soon as they come.
#pragma once

#include "base/time_accounts.hpp"

#include <chrono>
#include <cstdint>
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

// Users whose files block searches for long. Processes of other users come first.
class SlowUsers {
public:
    using Clock = TimeAccounts<uint64_t>::Clock;

    // so_far: time that a running search has been blocked.
    bool is_slow(uint64_t user, Clock::time_point now, Clock::duration so_far = {}) const
    {
        const auto own = slow_part(so_far) + of_user_.used(user, now);
        const auto all = slow_part(so_far) + of_all_.used(0, now);
        return own > for_user || (own > Clock::duration::zero() && all > for_all);
    }

    void searched(uint64_t user, Clock::duration took, Clock::time_point now)
    {
        if (slow_part(took) == Clock::duration::zero())
            return;
        of_user_.use(user, took, now);
        of_all_.use(0, took, now);
    }

private:
    // Most files are read within a few milliseconds.
    static constexpr Clock::duration quick = std::chrono::milliseconds(250);
    static constexpr Clock::duration for_user = std::chrono::seconds(2);
    static constexpr Clock::duration for_all = std::chrono::seconds(4);

    static constexpr Clock::duration slow_part(Clock::duration took)
    {
        return took > quick ? took : Clock::duration::zero();
    }

    TimeAccounts<uint64_t> of_user_{20};
    TimeAccounts<int> of_all_{5};
};

} // namespace gpusnoop
