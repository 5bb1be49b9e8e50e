// SPDX-License-Identifier: Apache-2.0
// Sums over NCCL calls, and the number of bytes that a call moves.
#pragma once

#include "rows/histogram.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace gpusnoop {

// "ncclAllReduceConfig" -> "AllReduce"
std::string_view operation_of(std::string_view symbol);
// Bytes that one rank's call moves, counted like nccl-tests. nullopt if the type or the number of ranks is not known.
std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks);

struct CollectiveSums {
    uint64_t calls = 0; // enqueued or captured
    uint64_t captured = 0;
    uint64_t errors = 0; // not counted in calls
    uint64_t bytes = 0;
    uint64_t unsized = 0;    // calls whose bytes are not known
    uint64_t enqueue_ns = 0; // duration of the calls, plus their share of the call that ends their group
    Histogram sizes;
    Histogram enqueues; // durations of single calls
    // Only collectives:
    uint64_t joined = 0;                     // calls matched with those of the other ranks on this machine
    uint64_t unjoined = 0;                   // calls whose counterparts in other ranks are not known
    uint64_t wait_ns = 0;                    // from this rank's arrival to the last rank's, in joined calls
    uint64_t last = 0;                       // calls in which this rank arrived last; the fields below cover only these
    uint64_t late_ns = 0;                    // from the last but one arrival to this one
    Histogram skews;                         // from the first arrival to this one
    std::map<int32_t, uint64_t> late_from{}; // late_ns by the caller's stack, if known

    void add(const CollectiveSums& other);
};

} // namespace gpusnoop
