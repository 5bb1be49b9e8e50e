// SPDX-License-Identifier: Apache-2.0
// What a run of cudalaunch was asked for, and the columns that show it.
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
inline constexpr std::string_view measures[] = {"latency", "grid", "block", "gap"}; // from the second on

struct Settings : LaunchSettings {
    Measure histogram_of = Measure::none;
    bool shapes = true; // of kernels are known
    NameOptions names;
    std::string graphs = "both";

    bool follows_graphs() const { return graphs != "count"; }
    bool expands_graphs() const { return graphs == "expand"; }
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were launches under stream capture
    bool graphs = false;   // ... and of graphs
};

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudalaunch
