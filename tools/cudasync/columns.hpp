// SPDX-License-Identifier: Apache-2.0
// cudasync's settings and columns.
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
    bool earlier = false; // at least one wait began before tracing; if not, text output has no column EARLIER
    bool ended = false;   // at least one thread ended in a wait; if not, text output has no column ENDED
};

// Prints the groups as one sorted table, or with -H as histograms.
void print_groups(Output& output, const WaitGroups& groups, Context context, uint64_t wall_ns);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudasync
