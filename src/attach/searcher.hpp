// SPDX-License-Identifier: Apache-2.0
// A helper that searches for files, its request, and the file that it examines.
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
    KnownFiles::Seen seen;
    FileGuard guard;
};

struct Targets::Searcher {
    using Clock = std::chrono::steady_clock;

    explicit Searcher(FileSearch& search) : helper([&search](Helper::Task& task) { search.serve(task); }) {}

    Helper helper;
    std::optional<SearchRequest> request;
    uint64_t user = 0; // that the request's process belongs to
    std::optional<Candidate> examining;
    CudaFile* again = nullptr;    // the file of SearchRequest::What::again; null where it was dropped
    std::optional<uint64_t> held; // see Targets::Held
    std::vector<CudaFile*> files; // of this search
    Clock::time_point begun, looked_at;
    Clock::duration silent{};
    uint64_t busy_before_ns = 0; // of the helper, when this search began

    // That it has run, or waited for a CPU.
    uint64_t busy_ns() const
    {
        const auto share = cpu_share(helper.pid(), helper.pid());
        return share ? share->used_ns + share->waited_ns : 0;
    }
    // Time that this search was blocked by files, without that for a CPU: a busy machine does not count.
    Clock::duration blocked(Clock::time_point now) const
    {
        const uint64_t busy = busy_ns();
        return std::max<Clock::duration>(now - begun - std::chrono::nanoseconds(busy - std::min(busy_before_ns, busy)),
                                         {});
    }
    // It works for a user whose files are slow.
    bool is_for(const SlowUsers& users, Clock::time_point now) const
    {
        return request && users.include(user, now, blocked(now));
    }
};

} // namespace gpusnoop
