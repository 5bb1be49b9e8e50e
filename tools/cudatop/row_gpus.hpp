// SPDX-License-Identifier: Apache-2.0
// The GPUs of a row, and the figures that NVML or the AMD driver report for it.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop::cudatop {

// The row's own GPU if rows are grouped by GPU, else the GPUs that its calls used or that its processes are on.
OnGpus gpus_of(const Key& key, const Group& group, const Context& context);

// "0-3"; "?0-7" if it may be any of these.
std::string shown_gpus(const OnGpus& on);

// Memory in bytes as the driver reports it, including contexts and allocations from before tracing. If rows are GPUs,
// the memory that all processes use.
std::optional<uint64_t> memory_by_driver(const Key& key, const Group& group, const Context& context);
// How much of the GPU the row's processes use.
Cell use_percent(const Key& key, const Group& group, const Context& context, std::optional<double> NvmlUse::*figure);
// "nvml" or "kfd"; empty if the row uses GPUs of both.
std::string_view driver_memory_source(const Group& group, const Context& context);
Cell busiest(const Key& key, const Group& group, const Context& context); // percent
// Average over the row's GPUs, or MIG instances, in percent, from the hardware's counters (GPM).
Cell efficiency(const Key& key, const Group& group, const Context& context,
                std::optional<double> NvmlEfficiency::*figure);
Cell power(const Key& key, const Group& group, const Context& context); // watts, summed over the row's GPUs

} // namespace gpusnoop::cudatop
