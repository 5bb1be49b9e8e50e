// SPDX-License-Identifier: Apache-2.0
// cudagraph's settings and columns.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/cudagraph/graphs.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudagraph {

enum class Measure : uint8_t { none, launch, instantiate, nodes };
// Names of the values of enum Measure, in order, without `none`.
inline constexpr std::string_view measures[] = {"launch", "instantiate", "nodes"};

struct Settings : GraphSettings {
    Measure histogram_of = Measure::none;
    std::optional<unsigned> storms;  // a storm is more captures per minute than this, or more instantiations
    std::optional<double> warm_up_s; // duration of the warm-up in seconds; unset: 60
};

struct Context : CallContext<Settings> {
    uint64_t now_ns = 0; // time of the report, CLOCK_MONOTONIC
    const Execs& execs;
    bool updates = false; // at least one row has updates
};

// Prints a line for a storm.
void print_storm(Output& output, const Storm& storm, Processes& processes, uint64_t wall_ns, const Frames& frames);

// Prints the groups as one sorted table, or with -H as histograms.
void print_groups(Output& output, const GraphGroups& groups, Context context, uint64_t wall_ns);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagraph
