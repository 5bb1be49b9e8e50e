// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <algorithm>
#include <sys/timex.h>

namespace gpusnoop {

std::optional<ClockError> clock_error()
{
    timex told{}; // modes 0: a question, which needs no privilege
    if (adjtimex(&told) < 0)
        return std::nullopt;
    return ClockError{static_cast<uint64_t>(std::max(told.maxerror, 0L)), !(told.status & STA_UNSYNC)};
}

} // namespace gpusnoop
