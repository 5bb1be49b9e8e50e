// SPDX-License-Identifier: Apache-2.0
// The GPUs of a row, and what NVML says of it on them.
#pragma once

#include "tools/cudatop/columns.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop::cudatop {

// The row's own where rows are told apart by GPU; else those that its calls were for, or that its processes are on.
OnGpus gpus_of(const Key& key, const Group& group, const Context& context);

// As people read it: "0-3", and "?0-7" where it may be any of them.
std::string shown_gpus(const OnGpus& on);

// Bytes, with contexts and earlier allocations; of a GPU, of all that use it.
std::optional<uint64_t> memory_by_driver(const Key& key, const Group& group, const Context& context);
// Percent, of the row's processes.
Cell use_percent(const Key& key, const Group& group, const Context& context, std::optional<double> NvmlUse::*figure);
// "nvml", "kfd"; of devices of both vendors none.
std::string_view driver_memory_source(const Group& group, const Context& context);
Cell busiest(const Key& key, const Group& group, const Context& context); // percent
// Percent, by the hardware's own counters (GPM), of all together; of MIG's instances where processes are on those.
Cell efficiency(const Key& key, const Group& group, const Context& context,
                std::optional<double> NvmlEfficiency::*figure);
Cell power(const Key& key, const Group& group, const Context& context); // watts, of all together

} // namespace gpusnoop::cudatop
