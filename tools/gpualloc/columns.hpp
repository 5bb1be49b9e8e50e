// SPDX-License-Identifier: Apache-2.0
// gpualloc's settings and columns.
#pragma once

#include "rows/call_events.hpp"
#include "rows/call_view.hpp"
#include "rows/report.hpp"
#include "tools/gpualloc/allocations.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace gpusnoop::gpualloc {

enum class Measure : uint8_t { none, size, latency, lifetime };
// Names of the values of enum Measure, in order, without `none`.
inline constexpr std::string_view measures[] = {"size", "latency", "lifetime"};

struct Settings : AllocationSettings {
    Measure histogram_of = Measure::none;
    bool leaks = false;
    bool exited = false;
    uint64_t older_than_ns = 0; // minimum age of leaks
    uint32_t live_entries = 1'000'000;
    std::string nvml_library; // path of the library; empty: the default library; "off": do not use NVML

    bool rows() const { return !events && !histogram() && !leaks && !exited; }
};

struct Context : CallContext<Settings> {
    bool nvml = false; // NVML is available
    // Each is true if any row has a nonzero value of this name; otherwise, the column is hidden.
    bool approximate = false;
    bool unknown_frees = false;
    bool out_of_memory = false;
};

// True if the columns from NVML can be shown. NVML reports memory per process, so each row must be a whole process or a
// sum of whole processes.
bool shows_nvml(const Settings& settings, const Options& options);

// Prints the groups as one sorted table, or with -H as histograms.
void print_groups(Output& output, AllocationGroups& groups, Context context, uint64_t wall_ns);

// Fields of the lines that -e prints.
std::span<const LineField> line_fields();

// Validates the options and derives settings from them. Throws UsageError.
void validate_options(Settings& settings, Options& options);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::gpualloc
