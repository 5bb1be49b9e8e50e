// SPDX-License-Identifier: Apache-2.0
// What a run of cudamemcpy was asked for, and the columns that show it.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/cudamemcpy/copies.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudamemcpy {

enum class Measure : uint8_t { none, size, latency, rate };
inline constexpr std::string_view measures[] = {"size", "latency", "rate"}; // from the second on

struct Settings : CopySettings {
    Measure histogram_of = Measure::none;
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were copies under stream capture
    bool unsized = false;  // there were copies of unknown size
};

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, const CopyGroups& groups, Context context, uint64_t wall_ns);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudamemcpy
