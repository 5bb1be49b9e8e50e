// SPDX-License-Identifier: Apache-2.0
// What a run of cudagraph was asked for, and the columns that show it.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/cudagraph/graphs.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudagraph {

enum class Measure : uint8_t { none, launch, instantiate, nodes };
inline constexpr std::string_view measures[] = {"launch", "instantiate", "nodes"}; // from the second on

struct Settings : GraphSettings {
    Measure histogram_of = Measure::none;
    std::optional<unsigned> storms;  // captures, or instantiations, in a minute that are none yet
    std::optional<double> warm_up_s; // 60
};

struct Context : CallContext<Settings> {
    uint64_t now_ns = 0; // CLOCK_MONOTONIC
    const Execs& execs;
    bool updates = false; // some row has such
};

// Prints a line for a storm.
void print_storm(Output& output, const Storm& storm, Processes& processes, uint64_t wall_ns, const Frames& frames);

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, const GraphGroups& groups, Context context, uint64_t wall_ns);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudagraph
