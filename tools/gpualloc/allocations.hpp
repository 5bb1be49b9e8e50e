// SPDX-License-Identifier: Apache-2.0
// Allocations and frees of an interval, and what is held at its end, grouped the way the user wants to see them.
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
    bool holding = false; // told apart
    bool size = false;
    bool operation = false; // allocations and frees
};

// What a group stands for; what the settings do not tell apart is empty.
struct AllocationKey : CallKey {
    uint8_t holding = HOLDING_NONE;
    uint8_t operation = KIND_NONE;
    std::optional<uint8_t> octave; // of the size, log2
    void set(const AllocationSettings& settings, const call_key& call);
    auto operator<=>(const AllocationKey&) const = default;
};

struct AllocationGroup {
    WhoSeen who;
    std::array<Amount, HOLDINGS> held;
    uint64_t allocs = 0; // of memory; what is no memory (is_memory()) counts only where kinds are told apart
    uint64_t frees = 0;
    uint64_t allocated_bytes = 0;
    uint64_t freed_bytes = 0;
    uint64_t released = 0; // went with a context or the process
    uint64_t released_bytes = 0;
    uint64_t failures = 0;
    uint64_t out_of_memory = 0;
    uint64_t failed_bytes = 0; // that the last of them asked for; where results are told apart, the last that failed
    uint64_t last_failed = 0;  // CLOCK_MONOTONIC, ns; 0: none has
    uint64_t unknown_frees = 0;
    uint64_t untracked = 0;
    uint64_t unsized = 0;
    uint64_t captured = 0; // recorded into a graph
    uint64_t trims = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram sizes;
    Histogram duration; // or lifetime
    bool approximate = false;
    std::optional<uint64_t> peak_bytes;
    std::optional<uint64_t> nvml_bytes;

    Amount device() const;
    Amount memory() const;
    Amount all() const;
    // Holds no memory, and nothing was asked for.
    bool idle() const;
    uint64_t churn_bytes() const { return allocated_bytes + freed_bytes; }
};

std::string_view operation_name(uint8_t kind); // "alloc", "free", "trim"

class AllocationGroups : public CallGroups<AllocationSettings, AllocationKey, AllocationGroup> {
public:
    AllocationGroups(const AllocationSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta);
    // What is held now, and what has gone since the last time; what was held by those that have ended has, too.
    void add_held(Holdings& holdings, const std::set<ImageId>& ended);
    // Of rows of one process with memory; the most that several held together is not the sum of what each did. map_fd:
    // of the kernel side's held_bytes.
    void add_peaks(int map_fd);
    void add_nvml(NvmlFigures& nvml); // as it says now

    using CallGroups::groups;
    std::map<AllocationKey, AllocationGroup>& groups() { return groups_; } // some are not to be shown

private:
    void add_released(const call_key& row, const Amount& amount);
    bool counts(uint8_t holding) const { return is_memory(holding) || settings_.holding; }
};

} // namespace gpusnoop
