// SPDX-License-Identifier: Apache-2.0
// What a run of cudamemcpy was asked for, and the columns that show it.
#pragma once

#include "call_view.hpp"
#include "copies.hpp"
#include "report.hpp"

#include <string>

namespace gpusnoop::cudamemcpy {

enum class Measure : uint8_t { none, size, latency, rate };

struct Settings : CopySettings {
    Measure histogram_of = Measure::none;
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were copies under stream capture
    bool unsized = false;  // there were copies of unknown size
};

// Prints the groups as one table, in the order asked for.
void print_groups(Output& output, const CopyGroups& groups, Context context, uint64_t wall_ns,
                  const FramesOf<CopyKey, CopyGroup>& frames);

// Prints a histogram of what was measured for each group.
void print_histograms(Output& output, const CopyGroups& groups, const Context& context, uint64_t wall_ns);

// Throws UsageError where no column has this name (header or JSON key).
void check_sort(const std::string& name);

} // namespace gpusnoop::cudamemcpy
