// SPDX-License-Identifier: Apache-2.0
// Budget for the time that a tool's event loop waits for helpers. All helpers share it, so that reports are printed and
// signals handled on time, however many processes make helpers slow. Late answers are applied when they arrive.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <sys/types.h>

namespace gpusnoop {

// Accounts of the time spent on each process or user. A process can make requests about itself slow on purpose, so used
// time is credited back only gradually, as a fraction of the elapsed time.
template<class Key>
class TimeAccounts {
public:
    using Clock = std::chrono::steady_clock;

    // share: the elapsed time divided by `share` is credited back. With 20, at most 5% of the elapsed time can be used
    // in the long run.
    explicit TimeAccounts(int share) : share_(share) {}

    // Returns the time used so far, minus the time that has been credited back.
    Clock::duration used(const Key& key, Clock::time_point now) const
    {
        const auto account = accounts_.find(key);
        return account != accounts_.end() ? used(account->second, now) : Clock::duration::zero();
    }

    bool empty() const { return accounts_.empty(); }

    void use(const Key& key, Clock::duration took, Clock::time_point now)
    {
        std::erase_if(accounts_, [&](const auto& entry) { return used(entry.second, now) == Clock::duration::zero(); });
        accounts_[key] = {used(key, now) + took, now};
    }

private:
    struct Account {
        Clock::duration used{};
        Clock::time_point as_of;
    };

    Clock::duration used(const Account& account, Clock::time_point now) const
    {
        return std::max(account.used - (now - account.as_of) / share_, Clock::duration::zero());
    }

    int share_;
    std::map<Key, Account> accounts_; // accounts whose used time is not zero
};

class WaitBudget {
public:
    using Clock = std::chrono::steady_clock;

    // Returns how long the event loop may wait for an answer about this process of this user. If the result is zero or
    // negative, the loop must not wait.
    Clock::duration left(pid_t process, uint64_t user, Clock::time_point now) const
    {
        return std::min({for_process - of_process_.used(process, now), for_user - of_user_.used(user, now),
                         for_all - of_all_.used(All(), now)});
    }

    void use(pid_t process, uint64_t user, Clock::duration took, Clock::time_point now)
    {
        of_process_.use(process, took, now);
        of_user_.use(user, took, now);
        of_all_.use(All(), took, now);
    }

private:
    // Burst limits: for one process, for one user, and in total. The total delays a report by at most 0.2 s. The other
    // two limits are lower, so that one process or user cannot use up the total.
#ifdef __SANITIZE_ADDRESS__
    static constexpr int scale = 4; // the sanitizer makes helpers several times slower
#else
    static constexpr int scale = 1;
#endif
    static constexpr Clock::duration for_process = scale * std::chrono::milliseconds(80);
    static constexpr Clock::duration for_user = scale * std::chrono::milliseconds(100);
    static constexpr Clock::duration for_all = scale * std::chrono::milliseconds(150);

    struct All {
        auto operator<=>(const All&) const = default;
    };
    TimeAccounts<pid_t> of_process_{20};
    TimeAccounts<uint64_t> of_user_{12};
    TimeAccounts<All> of_all_{8};
};

} // namespace gpusnoop
