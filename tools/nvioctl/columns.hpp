// SPDX-License-Identifier: Apache-2.0
// nvioctl's settings and columns.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/nvioctl/driver_calls.hpp"

#include <span>
#include <string>

namespace gpusnoop::nvioctl {

using Settings = DriverSettings;
using Context = CallContext<Settings>;

// Prints the groups as one sorted table, or with -H as histograms.
void print_groups(Output& output, const DriverGroups& groups, Context context, uint64_t wall_ns);

// The call's NV_STATUS or negative errno; an empty cell if the result is unknown.
Cell result_code(uint8_t outcome, int32_t result);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::nvioctl
