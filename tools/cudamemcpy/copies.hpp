// SPDX-License-Identifier: Apache-2.0
// Grouped counts of an interval's copies.
#pragma once

#include "bpf/shared/probe.h"
#include "rows/call_sums.hpp"
#include "rows/calls.hpp"
#include "rows/histogram.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>

namespace gpusnoop {

struct CopySettings : CallSettings {
    bool direction = false; // group by direction
    bool memory = false;
    bool form = false; // group by form of the call: synchronous or asynchronous
};

// Keys of a group. A key keeps its default if rows are not grouped by it.
struct CopyKey : CallKey {
    uint8_t direction = DIRECTION_UNKNOWN;
    uint8_t source = MEMORY_UNKNOWN;
    uint8_t destination = MEMORY_UNKNOWN;
    bool asynchronous = false;
    void set(const CopySettings& settings, const call_key& call);
    auto operator<=>(const CopyKey&) const = default;
};

struct CopyGroup {
    WhoSeen who;
    // Number of successful copies or, if results are unknown, of all copies. Captured copies are not included.
    uint64_t copies = 0;
    uint64_t bytes = 0;
    uint64_t calls = 0;
    uint64_t synchronous = 0; // number of copies whose call waits for the copy to complete
    uint64_t small = 0;
    uint64_t unsized = 0; // number of copies of unknown size, which `bytes` and `small` exclude
    uint64_t captured = 0;
    uint64_t errors = 0; // number of failed calls
    uint64_t failed_bytes = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram sizes;
    Histogram duration; // durations of calls or, with -H rate, rates of copies

    uint64_t sized() const { return copies - unsized; }
    void add(const CallDelta& delta);
};

std::string_view direction_name(uint8_t direction); // "H2D"; "unknown"
std::string_view memory_name(uint8_t memory);       // "pinned"; "unknown"

class CopyGroups : public CallGroups<CopySettings, CopyKey, CopyGroup> {
public:
    CopyGroups(const CopySettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta) { called(delta.key).add(delta); }
};

} // namespace gpusnoop
