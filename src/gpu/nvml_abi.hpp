// SPDX-License-Identifier: Apache-2.0
// Of NVML's interface, what all that ask it need; there is no header of it to build with.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpusnoop {

// nvmlReturn_t, and one of ours.
enum NvmlCode : int {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_NONSENSE = -1, // an answer that cannot be read
};

using NvmlDevice = struct nvmlDevice*;

constexpr int nvml_max_tries = 6;           // for what grows while it is read
constexpr unsigned nvml_max_room = 65536;   // elements
constexpr uint32_t nvml_max_pid = 1U << 22; // the kernel's PID_MAX_LIMIT

constexpr bool nvml_has_pid(uint32_t pid)
{
    return pid > 0 && pid <= nvml_max_pid;
}

// The room to ask with when `had` elements were too few and it said that there are `said`. Refused with room for what
// it had said, it grows while we ask: then more than it says.
constexpr unsigned nvml_more_room(unsigned had, unsigned said)
{
    const uint64_t wanted = had ? uint64_t{std::max(said, had)} * 3 / 2 + 8 : std::max(said, 1u);
    return static_cast<unsigned>(std::min<uint64_t>(wanted, nvml_max_room));
}

} // namespace gpusnoop
