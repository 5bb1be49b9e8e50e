// SPDX-License-Identifier: Apache-2.0
// What a run of cudasync was asked for, and the columns that show it.
#pragma once

#include "call_view.hpp"
#include "report.hpp"
#include "waits.hpp"

#include <string>

namespace gpusnoop::cudasync {

struct Settings : WaitSettings {
    uint64_t least_ns = 0; // shorter waits are left out
};

using Context = CallContext<Settings>;

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns,
                  const FramesOf<WaitKey, WaitGroup>& frames);

// Prints a histogram of the durations of each group.
void print_histograms(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns);

// Throws UsageError where no column has this name (header or JSON key).
void check_sort(const std::string& name);

} // namespace gpusnoop::cudasync
