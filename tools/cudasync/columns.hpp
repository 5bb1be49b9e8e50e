// SPDX-License-Identifier: Apache-2.0
// What a run of cudasync was asked for, and the columns that show it.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/cudasync/waits.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudasync {

struct Settings : WaitSettings {
    uint64_t least_ns = 0; // shorter waits are left out
};

struct Context : CallContext<Settings> {
    bool earlier = false; // some wait began before tracing did: the same
    bool ended = false;   // some thread ended in a wait: in text, a column of its own only then
};

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, const WaitGroups& groups, Context context, uint64_t wall_ns);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudasync
