// SPDX-License-Identifier: Apache-2.0
// GPUs of a row, and values that NVML or the AMD driver report for the row.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop::cudatop {

// Returns the row's own GPU if rows are grouped by GPU, else the GPUs that its calls used or its processes run on.
OnGpus gpus_of(const Key& key, const Group& group, const Context& context);

// Returns "0-3", or "?0-7" if the processes are on some of these GPUs, but it is not known on which.
std::string shown_gpus(const OnGpus& on);

// Memory in bytes as the driver reports it, including contexts and allocations made before tracing began. If rows are
// GPUs, returns the memory that all processes use.
std::optional<uint64_t> memory_by_driver(const Key& key, const Group& group, const Context& context);
// Use of the GPU by the row's processes, in percent: of time (sm_percent, sdma_percent) or of compute units
// (cu_percent).
Cell use_percent(const Key& key, const Group& group, const Context& context, std::optional<double> NvmlUse::*figure);
// Returns "nvml" or "kfd"; empty if the row uses GPUs of both drivers.
std::string_view driver_memory_source(const Group& group, const Context& context);
Cell busiest(const Key& key, const Group& group, const Context& context); // utilization of the row's busiest GPU, in
                                                                          // percent
// Average over the row's GPUs or MIG instances, in percent, measured by hardware counters (GPM).
Cell efficiency(const Key& key, const Group& group, const Context& context,
                std::optional<double> NvmlEfficiency::*figure);
Cell power(const Key& key, const Group& group, const Context& context); // watts, summed over the row's GPUs

} // namespace gpusnoop::cudatop
