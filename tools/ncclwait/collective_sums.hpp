// SPDX-License-Identifier: Apache-2.0
// What is added up of NCCL's calls, and how much each of them moves.
#pragma once

#include "rows/histogram.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace gpusnoop {

// "AllReduce" of "ncclAllReduceConfig".
std::string_view operation_of(std::string_view symbol);
// What one rank's part of a call moves, as nccl-tests counts it; nullopt: unknown type.
std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks);

struct CollectiveSums {
    uint64_t calls = 0; // that were enqueued, or captured
    uint64_t captured = 0;
    uint64_t errors = 0; // not among the calls
    uint64_t bytes = 0;
    uint64_t unsized = 0;    // calls whose bytes are not known
    uint64_t enqueue_ns = 0; // in calls, and their part of the ends of groups
    Histogram sizes;
    Histogram enqueues; // of each
    // Of collectives:
    uint64_t joined = 0;   // with those of the other ranks here
    uint64_t unjoined = 0; // it is not known which of the others' they belong to, or the others have made none
    uint64_t wait_ns = 0;  // from when it arrived to when the last one did
    uint64_t last = 0;     // calls that this rank came to last
    uint64_t late_ns = 0;  // ... by so much after the one before it
    Histogram skews;       // of these: from the first to the last
    std::map<int32_t, uint64_t> late_from{}; // late_ns by the caller's stack, where that is known

    void add(const CollectiveSums& other);
};

} // namespace gpusnoop
