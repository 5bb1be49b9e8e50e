// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace gpusnoop {

// Nanoseconds of a clock.
inline uint64_t clock_ns(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// How often the kernel's quick clock ticks in so many nanoseconds; 1 at least.
inline uint64_t jiffies_in(uint64_t ns)
{
    timespec jiffy{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
    const uint64_t one = std::max<uint64_t>(static_cast<uint64_t>(jiffy.tv_nsec), 1'000'000);
    return std::max<uint64_t>(ns / one, 1);
}

} // namespace gpusnoop
