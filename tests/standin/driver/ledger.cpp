// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "memory.hpp"

#include <algorithm>

namespace standin {
namespace {

constexpr int holdings = static_cast<int>(Holding::count_);

HoldingTally held[holdings], released[holdings];
uint64_t used[device_count];
uint64_t own, peak; // bytes of the device's own memory: now, and the maximum
unsigned epoch;     // incremented in a forked child; memory of an older epoch belongs to the parent

bool is_own(Holding holding)
{
    return holding <= Holding::vmm;
}

void add(HoldingTally& tally, const Held& h, uint64_t sign)
{
    tally.bytes += sign * h.bytes;
    tally.count += sign;
}

} // namespace

bool charge(Held& h)
{
    if (h.on_device && h.bytes > device_memory - used[h.device])
        return false;
    used[h.device] += h.on_device ? h.bytes : 0;
    h.epoch = epoch;
    add(held[static_cast<int>(h.holding)], h, 1);
    if (is_own(h.holding))
        peak = std::max(peak, own += h.bytes);
    return true;
}

void uncharge(const Held& h, Reason reason)
{
    used[h.device] -= h.on_device ? h.bytes : 0;
    if (h.epoch != epoch)
        return;
    add(held[static_cast<int>(h.holding)], h, -1);
    own -= is_own(h.holding) ? h.bytes : 0;
    if (reason == Reason::context_destroyed)
        add(released[static_cast<int>(h.holding)], h, 1);
}

} // namespace standin

// Fills both arrays, which have one tally per Holding. Returns the peak of the device's own memory held by this
// process.
CONTROL(uint64_t, standin_holdings)(standin::HoldingTally* held, standin::HoldingTally* released)
{
    std::lock_guard hold(standin::memory_lock);
    std::ranges::copy(standin::held, held);
    std::ranges::copy(standin::released, released);
    return standin::peak;
}

// For a forked child: memory held at the fork does not count as the child's.
CONTROL(void, standin_forget_holdings)()
{
    std::lock_guard hold(standin::memory_lock);
    std::ranges::fill(standin::held, standin::HoldingTally{});
    std::ranges::fill(standin::released, standin::HoldingTally{});
    standin::own = standin::peak = 0;
    standin::epoch++;
}
