// SPDX-License-Identifier: Apache-2.0
// What the parts of a thread's time are called.
#pragma once

#include "columns/cudagap_columns.hpp"

#include <array>
#include <string>
#include <string_view>

namespace gpusnoop::cudagap {

struct PartName {
    std::string_view header, key;
};

inline constexpr auto part_names = [] {
    std::array<PartName, TIME_PARTS> of{};
    of[TIME_LAUNCH] = {"LAUNCH%", "launch_ns"};
    of[TIME_COPY] = {"COPY%", "copy_ns"};
    of[TIME_WAIT] = {"WAIT%", "wait_ns"};
    of[TIME_MEMORY] = {"MEM%", "memory_ns"};
    of[TIME_CALL] = {"CALL%", "call_ns"};
    of[TIME_CPU] = {"CPU%", "cpu_ns"};
    of[TIME_RUNQ] = {"RUNQ%", "runq_ns"};
    of[TIME_THROTTLED] = {"THROT%", "throttled_ns"};
    of[TIME_HARDIRQ] = {"HIRQ%", "hardirq_ns"};
    of[TIME_SOFTIRQ] = {"SIRQ%", "softirq_ns"};
    of[TIME_STOPPED] = {"STOP%", "stopped_ns"};
    of[TIME_LOCK] = {"LOCK%", "lock_ns"};
    of[TIME_POLL] = {"POLL%", "poll_ns"};
    of[TIME_PIPE] = {"PIPE%", "pipe_ns"};
    of[TIME_SOCKET] = {"SOCK%", "socket_ns"};
    of[TIME_DISK] = {"DISK%", "disk_ns"};
    of[TIME_FAULT] = {"FAULT%", "fault_ns"};
    of[TIME_SLEEP] = {"SLEEP%", "sleep_ns"};
    of[TIME_DRIVER] = {"DRIVER%", "driver_ns"};
    of[TIME_CHILD] = {"CHILD%", "child_ns"};
    of[TIME_OTHER] = {"OTHER%", "other_ns"};
    return of;
}();

// Those of a run that does not ask for interrupts have them in what they come in.
inline bool is_told(size_t part, const Settings& settings)
{
    return settings.interrupts || !is_interrupted(static_cast<uint32_t>(part));
}

// The largest that are 1% of all or more: "PIPE 71%, RUNQ 20%, CPU 8%".
std::string largest_parts(const TimeParts& parts);

} // namespace gpusnoop::cudagap
