// SPDX-License-Identifier: Apache-2.0
// All that NVML says at a time, as bytes from one process to another.
#pragma once

#include "gpu/nvml.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct NvmlAnswers {
    std::string why; // there is none: a sentence; the rest is empty then
    std::vector<NvmlProcess> processes;
    std::vector<NvmlFailure> failures;
    std::vector<NvmlUse> use;
    std::vector<NvmlDeviceState> states;
};

std::string to_bytes(const NvmlAnswers& answers);
std::optional<NvmlAnswers> answers_from(std::string_view bytes); // nullopt: it is not the whole of one

} // namespace gpusnoop
