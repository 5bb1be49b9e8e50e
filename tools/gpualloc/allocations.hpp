// SPDX-License-Identifier: Apache-2.0
// Allocations and frees of an interval, and the memory held at its end, in groups.
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
    bool operation = false; // allocation, free or trim
};

// Dimensions of a group; unused ones keep their defaults.
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
    uint64_t allocs = 0; // of memory; if rows are grouped by kind, also of kinds that is_memory() excludes
    uint64_t frees = 0;
    uint64_t allocated_bytes = 0;
    uint64_t freed_bytes = 0;
    uint64_t released = 0; // allocations released without a free, because the context or process ended
    uint64_t released_bytes = 0;
    uint64_t failures = 0;
    uint64_t out_of_memory = 0;
    uint64_t failed_bytes = 0; // requested by the last out-of-memory allocation; with -x, by the last failed one
    uint64_t last_failed = 0;  // CLOCK_MONOTONIC, ns; 0: none
    uint64_t unknown_frees = 0;
    uint64_t untracked = 0;
    uint64_t unsized = 0;
    uint64_t captured = 0; // calls recorded into a graph
    uint64_t trims = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram sizes;
    Histogram duration; // of calls; with -H lifetime, the time that allocations were held
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
    // Adds the memory held now and the memory released since the last call. Processes in `ended` release what they
    // held.
    void add_held(Holdings& holdings, const std::set<ImageId>& ended);
    // Sets the peak of groups in which only one process has memory, because the peak of several processes is not the
    // sum of their peaks. map_fd: the kernel side's map held_bytes.
    void add_peaks(int map_fd);
    void add_nvml(NvmlFigures& nvml); // reads the current figures

    using CallGroups::groups;
    std::map<AllocationKey, AllocationGroup>& groups() { return groups_; } // callers remove groups that are not shown

private:
    void add_released(const call_key& row, const Amount& amount);
    bool counts(uint8_t holding) const { return is_memory(holding) || settings_.holding; }
};

} // namespace gpusnoop
