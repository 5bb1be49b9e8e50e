// SPDX-License-Identifier: Apache-2.0
// Launches of an interval, grouped as the user selected (--by).
#pragma once

#include "bpf/shared/probe.h"
#include "names/kernel_names.hpp"
#include "rows/call_sums.hpp"
#include "rows/calls.hpp"
#include "rows/histogram.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

struct LaunchSettings : CallSettings {
    bool kernel = false;       // group by kernel
    bool failed_apart = false; // count failed calls as errors only, not as launches
};

// Key of a group; unused dimensions are empty.
struct LaunchKey : CallKey {
    uint8_t kind = KIND_LAUNCH;
    std::string kernel; // name of the kernel; empty while only its handle is known
    uint64_t handle = 0;
    void set(const LaunchSettings& settings, const call_key& call);
    auto operator<=>(const LaunchKey&) const = default;
};

struct LaunchGroup {
    WhoSeen who;
    uint64_t kernels = 0; // kernel launches, without those captured into a graph
    uint64_t grids = 0;   // kernel launches with a known number of blocks
    uint64_t small_grids = 0;
    uint64_t graphs = 0;
    uint64_t graph_kernels = 0;  // kernels started by graph launches
    uint64_t graphs_unknown = 0; // launches of graphs whose kernels are unknown
    uint64_t host_functions = 0;
    uint64_t captured = 0;
    uint64_t errors = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    uint64_t last = 0;
    NameSource name_source = NameSource::lookup; // the least certain source of any name in the group
    bool shaped = false;                         // shape is set
    launch_shape shape{};                        // shape of the last launch
    Histogram blocks;
    Histogram threads;
    Histogram duration;

    uint64_t calls() const { return kernels + graphs + host_functions; }
    void add(const CallDelta& delta, bool failed_apart);

private:
    void count(const CallDelta& delta);
};

// Returns a text such as "vecadd(float*)", "[graph 0x...]" or "[host function f]"; if there is no name, the handle.
std::string launch_name(const LaunchKey& key);
// launch_name() with the kernel's name in the form that --names selects: "short", "base" or "full".
std::string shown_name(const LaunchKey& key, std::string_view how);

// Returns whether the launch's grid has fewer than FEW_BLOCKS blocks; nullopt if unknown.
std::optional<bool> has_few_blocks(const call_key& key);

class LaunchGroups : public CallGroups<LaunchSettings, LaunchKey, LaunchGroup> {
public:
    LaunchGroups(const LaunchSettings& settings, KernelNames& names, Processes& processes)
        : CallGroups(settings, processes), names_(names)
    {}

    void add(const CallDelta& delta);

private:
    KernelNames& names_;
};

} // namespace gpusnoop
