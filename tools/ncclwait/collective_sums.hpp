// SPDX-License-Identifier: Apache-2.0
// Sums over NCCL calls, and the computation of the bytes that a call moves.
#pragma once

#include "rows/histogram.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace gpusnoop {

// "ncclAllReduceConfig" -> "AllReduce"
std::string_view operation_of(std::string_view symbol);
// Bytes that one rank's call moves, as nccl-tests counts them. nullopt if the data type or the number of ranks is not
// known.
std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks);

struct CollectiveSums {
    uint64_t calls = 0; // calls that were enqueued or captured
    uint64_t captured = 0;
    uint64_t errors = 0; // failed calls; `calls` does not include them
    uint64_t bytes = 0;
    uint64_t unsized = 0;    // calls whose bytes are not known
    uint64_t enqueue_ns = 0; // total duration of `calls`, including their share of ncclGroupEnd
    Histogram sizes;
    Histogram enqueues; // durations of single calls
    // The fields below count only collectives, not sends and receives.
    uint64_t joined = 0;                     // calls matched with calls of the other ranks on this machine
    uint64_t unjoined = 0;                   // calls that could not be matched
    uint64_t wait_ns = 0;                    // total time from this rank's arrival to the last rank's, in joined calls
    uint64_t last = 0;                       // calls in which this rank arrived last; the fields below cover only these
    uint64_t late_ns = 0;                    // total time from the second-last arrival to this rank's
    Histogram skews;                         // time from the first arrival to this rank's, per call
    std::map<int32_t, uint64_t> late_from{}; // late_ns by id of the call's stack; only calls with a known stack

    void add(const CollectiveSums& other);
};

} // namespace gpusnoop
