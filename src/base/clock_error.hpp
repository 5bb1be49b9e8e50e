// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace gpusnoop {

// What the kernel itself says of its wall clock, as far as somebody (chrony, ntpd, PTP) tells it.
struct ClockError {
    uint64_t most_us = 0; // by how much it is wrong at most
    bool synchronized = false;
};
std::optional<ClockError> clock_error();

} // namespace gpusnoop
