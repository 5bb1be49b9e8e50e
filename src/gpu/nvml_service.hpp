// SPDX-License-Identifier: Apache-2.0
// Helper process that queries NVML and AMD's drivers. Queries are made in a helper because they may block forever if a
// GPU fails.
#pragma once

#include "gpu/nvml.hpp"
#include "reader/helper.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The results of one query, as the helper sends them to the tool.
struct NvmlAnswers {
    std::string why; // explains why NVML is not available; the other fields are then empty
    std::vector<NvmlProcess> processes;
    std::vector<NvmlFailure> failures;
    std::vector<NvmlUse> use;
    std::vector<NvmlDeviceState> states;
};

std::string to_bytes(const NvmlAnswers& answers);
std::optional<NvmlAnswers> answers_from(std::string_view bytes); // nullopt: the bytes are invalid

inline constexpr size_t nvml_answer_bytes_max = 16 << 20;

// The helper's main loop. The first reply reports whether NVML is available; later replies contain the results of
// queries. devices: whether to include device state and per-process use. Values that NVML measures between two queries
// (sm_percent, NvmlEfficiency) cover the time since the previous reply.
void serve_nvml(const NvmlPlaces& places, bool devices, Connection& owner);

} // namespace gpusnoop
