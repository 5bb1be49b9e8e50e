// SPDX-License-Identifier: Apache-2.0
// Helper that asks NVML and AMD's drivers. A call to them lasts as long as the driver takes, which is forever where a
// GPU fails: just then the tool has to go on.
#pragma once

#include "gpu/nvml_message.hpp"
#include "reader/helper.hpp"

namespace gpusnoop {

inline constexpr size_t nvml_answer_bytes_max = 16 << 20;

// The first answer of a helper says whether NVML is there, each later one has its figures (reader/parts.hpp). devices:
// their state and the processes that use them, too; measured from the first answer on.
void serve_nvml(const NvmlPlaces& places, bool devices, Connection& owner);

} // namespace gpusnoop
