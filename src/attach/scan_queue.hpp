// SPDX-License-Identifier: Apache-2.0
// Queue of processes to scan for mapped files. Rate-limits scans per process: a 500 ms burst, which loading
// PyTorch needs, then 5% of elapsed time.
#pragma once

#include "reader/wait_budget.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <sys/types.h>

namespace gpusnoop {

class ScanQueue {
public:
    using Clock = TimeAccounts<pid_t>::Clock;

    void add(pid_t pid, Clock::time_point now)
    {
        due_.try_emplace(pid, now + std::max(taken_.used(pid, now) - burst, Clock::duration::zero()) * share);
    }

    // Removes and returns the next process whose scan is due.
    std::optional<pid_t> next(Clock::time_point now)
    {
        const auto next = std::ranges::find_if(due_, [now](const auto& entry) { return entry.second <= now; });
        return next == due_.end() ? std::nullopt : std::optional(due_.extract(next).key());
    }

    // Call it after each scan.
    void scanned(pid_t pid, Clock::duration took, Clock::time_point now) { taken_.use(pid, took, now); }

private:
    static constexpr Clock::duration burst = std::chrono::milliseconds(500);
    static constexpr int share = 20; // after the burst, scans may take 1/share of elapsed time

    std::map<pid_t, Clock::time_point> due_;
    TimeAccounts<pid_t> taken_{share};
};

} // namespace gpusnoop
