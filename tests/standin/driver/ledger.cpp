// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "memory.hpp"

#include <algorithm>

namespace standin {
namespace {

constexpr int holdings = static_cast<int>(Holding::count_);

HoldingTally held[holdings], released[holdings];
uint64_t used[device_count];
uint64_t own, peak; // of the device's own memory
unsigned epoch;     // another one after each fork: what is older is the parent's

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

bool hold(Held& h)
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

void let_go(const Held& h, Why why)
{
    used[h.device] -= h.on_device ? h.bytes : 0;
    if (h.epoch != epoch)
        return;
    add(held[static_cast<int>(h.holding)], h, -1);
    own -= is_own(h.holding) ? h.bytes : 0;
    if (why == Why::context_gone)
        add(released[static_cast<int>(h.holding)], h, 1);
}

uint64_t in_use(int device)
{
    return used[device];
}

} // namespace standin

// Fills both, which have room for one tally per Holding; returns the most that this process ever held of the device's
// own memory.
CONTROL(uint64_t, standin_holdings)(standin::HoldingTally* held, standin::HoldingTally* released)
{
    std::lock_guard hold(standin::memory_lock);
    std::ranges::copy(standin::held, held);
    std::ranges::copy(standin::released, released);
    return standin::peak;
}

// For a forked child: nothing of what is there counts as its own.
CONTROL(void, standin_forget_holdings)()
{
    std::lock_guard hold(standin::memory_lock);
    std::ranges::fill(standin::held, standin::HoldingTally{});
    std::ranges::fill(standin::released, standin::HoldingTally{});
    standin::own = standin::peak = 0;
    standin::epoch++;
}
