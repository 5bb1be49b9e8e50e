// SPDX-License-Identifier: Apache-2.0
// What a run of cudalaunch was asked for, and the columns that show it.
#pragma once

#include "launch_groups.hpp"
#include "options.hpp"
#include "report.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gpusnoop {

enum class Measure : uint8_t { none, latency, grid, block, gap };

struct Settings {
    View view;
    Measure histogram = Measure::none;
    std::string measure; // its name
    bool events = false;
    bool latency = false;
    bool driver = true;
    bool runtime = false;
    std::string sort = "launches"; // JSON key or header of a column
};

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0;    // that the table covers
    bool captured = false; // there were launches under stream capture

    const WhoView& who() const { return settings.view.who; }
};

using Frames = FramesOf<GroupKey, Group>;

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns, const Frames& frames);

// Prints a histogram of what was measured for each group.
void print_histograms(Output& output, const LaunchGroups& groups, const Context& context, uint64_t wall_ns);

// Throws UsageError where no column has this name (header or JSON key).
void check_sort(const std::string& name);

} // namespace gpusnoop
