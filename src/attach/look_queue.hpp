// SPDX-License-Identifier: Apache-2.0
// Processes whose mappings are to be looked at. A process decides how long a look at it takes and how often there is
// cause for one. Each may take some of our time at once, as one does that loads PyTorch, and then a small share of it,
// so that others are seen as soon as they come.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <sys/types.h>

namespace gpusnoop {

class LookQueue {
public:
    using Clock = std::chrono::steady_clock;

    // At once or, where it has taken too much time, later.
    void add(pid_t pid, Clock::time_point now);

    // The next one that is due.
    std::optional<pid_t> next(Clock::time_point now);

    // To be called after each look.
    void looked(pid_t pid, Clock::duration took, Clock::time_point now);

private:
    // How much of the time at once it has used, by when that was; it is given back little by little.
    struct Account {
        Clock::duration used{};
        Clock::time_point as_of;
    };
    static Clock::duration used(const Account& account, Clock::time_point now);

    std::map<pid_t, Clock::time_point> due_;
    std::map<pid_t, Account> accounts_; // of those that have used any
};

} // namespace gpusnoop
