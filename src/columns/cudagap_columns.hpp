// SPDX-License-Identifier: Apache-2.0
// What a run of cudagap was asked for, and the columns that show it.
#pragma once

#include "calls/report.hpp"
#include "calls/thread_times.hpp"

#include <bitset>
#include <map>
#include <optional>
#include <string>

namespace gpusnoop::cudagap {

struct Settings {
    CallView view;
    std::optional<std::string> by;
    std::string sort = "wall_ns"; // JSON key or header of a column
};

struct Context {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0;              // that the table covers
    std::bitset<TIME_PARTS> parts{}; // that the table has columns of

    const WhoView& who() const { return settings.view.who; }
};

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagap
