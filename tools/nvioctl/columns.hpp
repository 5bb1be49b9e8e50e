// SPDX-License-Identifier: Apache-2.0
// What a run of nvioctl was asked for, and the columns that show it.
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

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, const DriverGroups& groups, Context context, uint64_t wall_ns);

// NV_STATUS, or a negative errno; empty where it cannot be known.
Cell result_code(uint8_t outcome, int32_t result);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::nvioctl
