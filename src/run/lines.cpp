// SPDX-License-Identifier: Apache-2.0
#include "run/lines.hpp"

#include "base/shared_word.hpp"

#include <algorithm>
#include <bit>

namespace gpusnoop {

static_assert(sizeof(line_ends) <= sizeof(line));

uint32_t Lines::places_in(uint64_t bytes)
{
    return static_cast<uint32_t>(bytes / sizeof(line));
}

uint64_t Lines::wake_bits(uint32_t places)
{
    return std::bit_floor(std::max(places / 8, 1U)) - 1;
}

Lines::Lines(int map, uint32_t places) : array_(map, size_t{1} + places), places_(places) {}

uint64_t Lines::sent() const
{
    return ends().sent;
}

bool Lines::take(uint64_t end, const Take& take, std::chrono::steady_clock::time_point until)
{
    const Returned returned(*this);
    while (taken_ != end) {
        const volatile line& place = array_[1 + taken_ % places_];
        if (load_acquire(place.whole) != taken_ + 1)
            return false; // its thread has been preempted on the way: it comes next time
        const call_event event = const_cast<const call_event&>(place.event);
        if (++taken_ % 256 == 0)
            give_back();
        take(&event, sizeof(event));
        if (std::chrono::steady_clock::now() > until)
            return taken_ != end;
    }
    return false;
}

void Lines::give_back()
{
    store_release<__u64>(ends().taken, taken_); // behind all reading
}

} // namespace gpusnoop
