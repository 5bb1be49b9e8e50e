// SPDX-License-Identifier: Apache-2.0
// Helper that asks NVML and AMD's drivers. A call to them lasts as long as the driver takes, which is forever where a
// GPU fails: just then the tool has to go on.
#pragma once

#include "gpu/nvml.hpp"
#include "reader/helper.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// All that NVML says at a time, as bytes from one process to another.
struct NvmlAnswers {
    std::string why; // there is none: a sentence; the rest is empty then
    std::vector<NvmlProcess> processes;
    std::vector<NvmlFailure> failures;
    std::vector<NvmlUse> use;
    std::vector<NvmlDeviceState> states;
};

std::string to_bytes(const NvmlAnswers& answers);
std::optional<NvmlAnswers> answers_from(std::string_view bytes); // nullopt: it is not the whole of one

inline constexpr size_t nvml_answer_bytes_max = 16 << 20;

// The first answer of a helper says whether NVML is there, each later one has its figures (reader/message.hpp).
// devices: their state and the processes that use them, too; measured from the first answer on.
void serve_nvml(const NvmlPlaces& places, bool devices, Connection& owner);

} // namespace gpusnoop
