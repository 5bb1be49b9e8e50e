// SPDX-License-Identifier: Apache-2.0
// What a run of nvioctl was asked for, and the columns that show it.
#pragma once

#include "call_view.hpp"
#include "driver_calls.hpp"
#include "report.hpp"

#include <string>

namespace gpusnoop::nvioctl {

using Settings = DriverSettings;
using Context = CallContext<Settings>;

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const DriverGroups& groups, const Context& context, uint64_t wall_ns,
                  const FramesOf<DriverKey, DriverGroup>& frames);

// Prints a histogram of the latencies of each group.
void print_histograms(Output& output, const DriverGroups& groups, const Context& context, uint64_t wall_ns);

// NV_STATUS, or a negative errno; empty where it cannot be known.
Cell result_code(uint8_t outcome, int32_t result);

// Throws UsageError where no column has this name (header or JSON key).
void check_sort(const std::string& name);

} // namespace gpusnoop::nvioctl
