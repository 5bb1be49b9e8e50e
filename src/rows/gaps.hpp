// SPDX-License-Identifier: Apache-2.0
// Gaps between calls that launch, by their length: how many, and where their time went.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/gap.h"
#include "rows/histogram.hpp"
#include "rows/thread_times.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace gpusnoop {

TimeParts parts_of(const period& period);
std::string comm_of(const waker& waker);

struct GapKey {
    WhoKey who;
    uint64_t stream = 0; // where the view tells streams apart
    auto operator<=>(const GapKey&) const = default;
};

struct GapGroup {
    WhoSeen who;
    Histogram gaps;
    std::map<unsigned, TimeParts> parts; // by bucket
};

class GapCounts {
public:
    // The kernel side's table, and that of gaps that streams are in.
    GapCounts(int counts_fd, int streams_fd) : table_(counts_fd), streams_(streams_fd) {}

    // What has come since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<GapKey, GapGroup> drain(const std::vector<ThreadTime>& times, const CallView& view, Processes& processes);

private:
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>; // place, bucket, stream

    void forget(const std::set<uint32_t>& places);

    HashTable<gap_key, gap_count> table_;
    HashTable<stream_place, open_period> streams_;
    std::map<Key, gap_count> told_;
};

// Threads that the kernel side follows because they woke one that calls.
class WakingThreads {
public:
    // marks: how many threads the kernel side looks at, by their id.
    WakingThreads(int threads_fd, std::span<__u32> marks) : table_(threads_fd), marks_(marks) {}

    // Those that have not done so for long make room.
    void forget_idle(uint64_t now_ns);

private:
    HashTable<uint32_t, waking_thread> table_;
    std::span<__u32> marks_;
    uint64_t looked_ns_ = 0;
};

} // namespace gpusnoop
