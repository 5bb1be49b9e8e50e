// SPDX-License-Identifier: Apache-2.0
// cudalaunch's settings and columns.
#pragma once

#include "names/kernel_text.hpp"
#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/launch_groups.hpp"
#include "rows/report.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudalaunch {

enum class Measure : uint8_t { none, latency, grid, block, gap };
// Names of the values of enum Measure, in order, without `none`.
inline constexpr std::string_view measures[] = {"latency", "grid", "block", "gap"};

struct Settings : LaunchSettings {
    Measure histogram_of = Measure::none;
    bool shapes = true; // grids and blocks are recorded
    NameOptions names;
    std::string graphs = "both";

    bool follows_graphs() const { return graphs != "count"; }
    bool expands_graphs() const { return graphs == "expand"; }
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were launches under stream capture
    bool graphs = false;   // there were graph launches
};

// Prints the groups as a sorted table or, with -H, as histograms.
void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudalaunch
