// SPDX-License-Identifier: Apache-2.0
// Time that is spent on somebody who decides how much it takes: some at once and then, little by little, a share of
// what passes.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace gpusnoop {

template<class Who>
class TimeAccounts {
public:
    using Clock = std::chrono::steady_clock;

    // share: one part of so many of the time that passes is given back.
    explicit TimeAccounts(int share) : share_(share) {}

    // What has been used, less what has been given back since.
    Clock::duration used(const Who& who, Clock::time_point now) const
    {
        const auto account = accounts_.find(who);
        return account != accounts_.end() ? used(account->second, now) : Clock::duration::zero();
    }

    bool empty() const { return accounts_.empty(); }

    void use(const Who& who, Clock::duration took, Clock::time_point now)
    {
        std::erase_if(accounts_, [&](const auto& entry) { return used(entry.second, now) == Clock::duration::zero(); });
        accounts_[who] = {used(who, now) + took, now};
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
    std::map<Who, Account> accounts_; // of those that have used any
};

} // namespace gpusnoop
