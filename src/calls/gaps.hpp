// SPDX-License-Identifier: Apache-2.0
// Gaps between calls that launch, by their length: how many, and where their time went.
#pragma once

#include "bpf/shared/gap.h"
#include "calls/thread_times.hpp"
#include "maps/bpf_map.hpp"
#include "output/histogram.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gpusnoop {

struct GapGroup {
    WhoSeen who;
    Histogram gaps;
    std::map<unsigned, TimeParts> parts; // by bucket
};

class GapCounts {
public:
    explicit GapCounts(int counts_fd) : table_(counts_fd) {}

    // What has come since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<TimeKey, GapGroup> drain(const std::vector<ThreadTime>& times, const CallView& view, Processes& processes);

private:
    using Key = std::pair<uint32_t, uint32_t>; // place, bucket

    void forget(uint32_t place);

    HashTable<gap_key, gap_count> table_;
    std::map<Key, gap_count> told_;
};

} // namespace gpusnoop
