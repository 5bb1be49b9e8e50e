// SPDX-License-Identifier: Apache-2.0
// Helper process that queries NVML and AMD's drivers. A query may block forever if a GPU fails, but the tool must keep
// running.
#pragma once

#include "gpu/nvml.hpp"
#include "reader/helper.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The results of one query, sent between processes.
struct NvmlAnswers {
    std::string why; // message on why NVML is not available; the other fields are then empty
    std::vector<NvmlProcess> processes;
    std::vector<NvmlFailure> failures;
    std::vector<NvmlUse> use;
    std::vector<NvmlDeviceState> states;
};

std::string to_bytes(const NvmlAnswers& answers);
std::optional<NvmlAnswers> answers_from(std::string_view bytes); // nullopt: invalid

inline constexpr size_t nvml_answer_bytes_max = 16 << 20;

// The helper's main loop. The first answer reports whether NVML is available, and later answers contain figures.
// devices: include device state and per-process use, measured from the first answer on.
void serve_nvml(const NvmlPlaces& places, bool devices, Connection& owner);

} // namespace gpusnoop
