// SPDX-License-Identifier: Apache-2.0
// State of a scan: the request that a helper works on, and the file that it examines.
#pragma once

#include "attach/targets.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace gpusnoop {

struct Targets::Candidate {
    FileCandidate candidate;
    Fd where;
    KnownFiles::Version version;
    FileGuard guard;
};

struct Targets::Search {
    using Clock = std::chrono::steady_clock;

    SearchRequest request{};
    CudaFile* suspended_file = nullptr; // file to reexamine (Kind::reexamine); null if it was dropped meanwhile
    std::optional<uint64_t> held{};     // Targets::Held::id; nullopt if no paused process waits for this scan
    pid_t helper = -1;
    uint64_t user = 0; // owner (owner_of()) of the process to scan
    std::optional<Candidate> examining{};
    std::vector<CudaFile*> files{};
    Clock::time_point begin{};
    uint64_t busy_before_ns = 0; // busy_ns() at begin

    // Returns the helper's CPU time plus the time that it waited for a CPU.
    static uint64_t busy_ns(pid_t helper)
    {
        const auto share = thread_cpu_time(helper, helper);
        return share ? share->used_ns + share->waited_ns : 0;
    }
    // Returns the time for which files blocked this scan. It excludes waiting for a CPU, so that the files are not
    // blamed for a busy machine.
    Clock::duration blocked(Clock::time_point now) const
    {
        const uint64_t busy = busy_ns(helper);
        return std::max<Clock::duration>(now - begin - std::chrono::nanoseconds(busy - std::min(busy_before_ns, busy)),
                                         {});
    }
    bool is_for_slow_user(const Blame& blame, Clock::time_point now) const
    {
        return blame.is_slow(user, now, blocked(now));
    }
};

} // namespace gpusnoop
