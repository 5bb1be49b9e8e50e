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

// How often the kernel's quick clock ticks in a second (CONFIG_HZ), which is as fine as its coarse ones are.
inline uint64_t jiffies_per_second()
{
    timespec jiffy{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
    return 1'000'000'000 / std::max<uint64_t>(static_cast<uint64_t>(jiffy.tv_nsec), 1'000'000);
}

} // namespace gpusnoop
