// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <algorithm>
#include <sys/timex.h>

namespace gpusnoop {

std::optional<ClockError> clock_error()
{
    timex state{}; // modes == 0 only reads, which needs no privilege
    if (adjtimex(&state) < 0)
        return std::nullopt;
    return ClockError{static_cast<uint64_t>(std::max(state.maxerror, 0L)), !(state.status & STA_UNSYNC)};
}

} // namespace gpusnoop
