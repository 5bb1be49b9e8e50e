// SPDX-License-Identifier: Apache-2.0
// Groups of the allocations and frees in an interval, with the memory held at its end.
#pragma once

#include "bpf/shared/probe.h"
#include "gpu/nvml_figures.hpp"
#include "rows/call_sums.hpp"
#include "rows/histogram.hpp"
#include "rows/holdings.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace gpusnoop {

struct AllocationSettings : CallSettings {
    bool holding = false; // group by kind of memory
    bool size = false;
    bool operation = false; // group by operation: allocation, free or trim
};

// Values by which rows are grouped. A value keeps its default if rows are not grouped by it.
struct AllocationKey : CallKey {
    uint8_t holding = HOLDING_NONE;
    uint8_t operation = KIND_NONE;
    std::optional<uint8_t> octave; // log2 of the size, rounded down
    void set(const AllocationSettings& settings, const call_key& call);
    auto operator<=>(const AllocationKey&) const = default;
};

struct AllocationGroup {
    WhoSeen who;
    std::array<Amount, HOLDINGS> held;
    uint64_t allocs = 0; // successful allocations; those for which is_memory() is false are counted only with --by kind
    uint64_t frees = 0;
    uint64_t allocated_bytes = 0;
    uint64_t freed_bytes = 0;
    uint64_t released = 0; // allocations released without a free, because the context or process ended
    uint64_t released_bytes = 0;
    uint64_t failures = 0;
    uint64_t out_of_memory = 0;
    uint64_t failed_bytes = 0; // size of the last allocation that ran out of memory (with -x: that failed)
    uint64_t last_failed = 0;  // time of the allocation in failed_bytes, CLOCK_MONOTONIC, ns; 0: none
    uint64_t unknown_frees = 0;
    uint64_t untracked = 0;
    uint64_t unsized = 0;
    uint64_t captured = 0; // calls recorded into a graph
    uint64_t trims = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram sizes;
    Histogram duration; // durations of calls; with -H lifetime, how long allocations were held
    bool approximate = false;
    std::optional<uint64_t> peak_bytes;
    std::optional<uint64_t> nvml_bytes;

    Amount device() const;
    Amount memory() const;
    Amount all() const;
    // True if the group holds no memory and made no call.
    bool idle() const;
    uint64_t churn_bytes() const { return allocated_bytes + freed_bytes; }
};

std::string_view operation_name(uint8_t kind); // "alloc", "free", "trim"

class AllocationGroups : public CallGroups<AllocationSettings, AllocationKey, AllocationGroup> {
public:
    AllocationGroups(const AllocationSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta);
    // Adds the memory held now, and the memory released since the last call of add_held(). Memory held by processes in
    // `ended` counts as released.
    void add_held(Holdings& holdings, const std::set<ImageId>& ended);
    // Sets the peak of each group in which only one process has memory. Peaks of several processes cannot be summed,
    // because they occur at different times. map_fd: file descriptor of the BPF map held_bytes.
    void add_peaks(int map_fd);
    void add_nvml(NvmlFigures& nvml); // queries NVML now

    using CallGroups::groups;
    std::map<AllocationKey, AllocationGroup>& groups() { return groups_; } // lets callers remove groups

private:
    void add_released(const call_key& row, const Amount& amount);
    bool counts(uint8_t holding) const { return is_memory(holding) || settings_.holding; }
};

} // namespace gpusnoop
