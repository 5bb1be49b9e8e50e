// SPDX-License-Identifier: Apache-2.0
// cudamemcpy's settings and columns.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/cudamemcpy/copies.hpp"

#include <span>
#include <string>

namespace gpusnoop::cudamemcpy {

enum class Measure : uint8_t { none, size, latency, rate };
// Names of the values of enum Measure, in order, without `none`.
inline constexpr std::string_view measures[] = {"size", "latency", "rate"};

struct Settings : CopySettings {
    Measure histogram_of = Measure::none;
};

struct Context : CallContext<Settings> {
    bool captured = false; // there were copies under stream capture
    bool unsized = false;  // there were copies of unknown size
};

// Prints the groups as a sorted table or, with -H, as histograms.
void print_groups(Output& output, const CopyGroups& groups, Context context, uint64_t wall_ns);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::cudamemcpy
