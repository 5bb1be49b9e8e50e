// SPDX-License-Identifier: Apache-2.0
// What a run of gpualloc was asked for, and the columns that show it.
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
inline constexpr std::string_view measures[] = {"size", "latency", "lifetime"}; // from the second on

struct Settings : AllocationSettings {
    Measure histogram_of = Measure::none;
    bool leaks = false;
    bool exited = false;
    uint64_t older_than_ns = 0; // leaks
    uint32_t live_entries = 1'000'000;
    std::string nvml_library; // empty: the usual one; "off"

    bool rows() const { return !events && !histogram() && !leaks && !exited; }
};

struct Context : CallContext<Settings> {
    bool nvml = false; // it can be asked
    // Some row has such: a column of zeros tells nothing.
    bool approximate = false;
    bool unknown_frees = false;
    bool no_room = false; // for an allocation
};

// Whether the rows of this run have columns for NVML's figures, which are of whole processes.
bool shows_nvml(const Settings& settings, const Options& options);

// Prints the groups as one table, in the order asked for, or with -H as histograms.
void print_groups(Output& output, AllocationGroups& groups, Context context, uint64_t wall_ns);

// Of a line for each call (-e).
std::span<const LineField> line_fields();

// Validates the options and sets what follows from them. Throws UsageError.
void validate_options(Settings& settings, Options& options);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::gpualloc
