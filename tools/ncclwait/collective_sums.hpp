// SPDX-License-Identifier: Apache-2.0
// Sums of NCCL calls, and the bytes that a call moves.
#pragma once

#include "rows/histogram.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace gpusnoop {

// "ncclAllReduceConfig" -> "AllReduce"
std::string_view operation_of(std::string_view symbol);
// Bytes that one rank's part of a call moves, counted like nccl-tests; nullopt: unknown type.
std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks);

struct CollectiveSums {
    uint64_t calls = 0; // enqueued or captured
    uint64_t captured = 0;
    uint64_t errors = 0; // not counted in calls
    uint64_t bytes = 0;
    uint64_t unsized = 0;    // calls whose bytes are not known
    uint64_t enqueue_ns = 0; // duration of the calls, with their share of the group's end
    Histogram sizes;
    Histogram enqueues; // durations of single calls
    // Of collectives:
    uint64_t joined = 0;                     // matched with those of the other ranks here
    uint64_t unjoined = 0;                   // without known counterparts in other ranks
    uint64_t wait_ns = 0;                    // from the rank's arrival to the last one
    uint64_t last = 0;                       // calls in which this rank arrived last
    uint64_t late_ns = 0;                    // in these, the time after the last but one
    Histogram skews;                         // in these, the time from the first arrival to the last
    std::map<int32_t, uint64_t> late_from{}; // late_ns by the caller's stack, if known

    void add(const CollectiveSums& other);
};

} // namespace gpusnoop
