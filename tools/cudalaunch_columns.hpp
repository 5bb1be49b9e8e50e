// SPDX-License-Identifier: Apache-2.0
// What a run of cudalaunch was asked for, and the columns that show it.
#pragma once

#include "call_view.hpp"
#include "launch_groups.hpp"
#include "report.hpp"

#include <string>

namespace gpusnoop::cudalaunch {

enum class Measure : uint8_t { none, latency, grid, block, gap };

struct Settings : LaunchSettings {
    Measure histogram_of = Measure::none;
    bool shapes = true; // of kernels are known
    std::string names = "short";
    bool no_cache = false;
    std::string graphs = "both";

    bool follows_graphs() const { return graphs != "count"; }
    bool expands_graphs() const { return graphs == "expand"; }
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were launches under stream capture
    bool graphs = false;   // ... and of graphs
};

using Frames = FramesOf<LaunchKey, LaunchGroup>;

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns, const Frames& frames);

// Prints a histogram of what was measured for each group.
void print_histograms(Output& output, const LaunchGroups& groups, const Context& context, uint64_t wall_ns);

// Throws UsageError where no column has this name (header or JSON key).
void check_sort(const std::string& name);

} // namespace gpusnoop::cudalaunch
