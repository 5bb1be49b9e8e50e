// SPDX-License-Identifier: Apache-2.0
// Users whose files block searches for long. Processes of other users come first.
#pragma once

#include "base/time_accounts.hpp"

#include <chrono>
#include <cstdint>

namespace gpusnoop {

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
