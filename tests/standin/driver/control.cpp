// SPDX-License-Identifier: Apache-2.0
// Control functions for tests: change this thread's next call; read the counters.
#include "state.hpp"

#include <ctime>
#include <unistd.h>
#include <utility>

namespace standin {

constinit thread_local ThreadState thread = {};

namespace {

constexpr int classes = static_cast<int>(Class::count_);

// One cache line each, so that threads do not slow each other down.
struct alignas(64) Shard {
    std::atomic<uint64_t> calls[classes];
};
Shard shards[64];

uint64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000ull + t.tv_nsec;
}

unsigned claim_shard()
{
    static std::atomic<unsigned> next{0};
    return thread.shard = 1 + next.fetch_add(1, std::memory_order_relaxed) % 64;
}

} // namespace

void count(Class c)
{
    unsigned shard = thread.shard ? thread.shard : claim_shard();
    shards[shard - 1].calls[static_cast<int>(c)].fetch_add(1, std::memory_order_relaxed);
}

int apply_armed()
{
    int result = thread.next_result;
    uint64_t end = thread.next_delay_ns ? now_ns() + thread.next_delay_ns : 0;
    uint64_t block = thread.next_block_ns;
    auto* const inside = std::exchange(thread.next_inside, nullptr);
    thread.armed = false;
    thread.next_result = 0;
    thread.next_delay_ns = thread.next_block_ns = 0;
    while (end && now_ns() < end)
        ;
    if (inside)
        inside();
    if (block) {
        timespec t = {static_cast<time_t>(block / 1'000'000'000), static_cast<long>(block % 1'000'000'000)};
        thread.asleep = true;
        nanosleep(&t, nullptr); // not resumed after a signal: signals also end the other waits of a script
        thread.asleep = false;
    }
    return result;
}

} // namespace standin

using standin::thread;

namespace {

void arm()
{
    thread.armed = thread.next_result || thread.next_delay_ns || thread.next_block_ns || thread.next_inside;
}

} // namespace

// The next launch, graph launch, host function, copy, allocation, free, synchronization or graph call of this thread
// returns `code`.
CONTROL(void, standin_next_result)(int code)
{
    thread.next_result = code;
    arm();
}

// This thread's next call, of a kind listed at standin_next_result(), first spins (delay) or sleeps (block) for `ns`
// nanoseconds.
CONTROL(void, standin_next_delay_ns)(uint64_t ns)
{
    thread.next_delay_ns = ns;
    arm();
}

CONTROL(void, standin_next_block_ns)(uint64_t ns)
{
    thread.next_block_ns = ns;
    arm();
}

// This thread's next call, of a kind listed at standin_next_result(), first runs `function`.
CONTROL(void, standin_next_inside)(void (*function)())
{
    thread.next_inside = function;
    arm();
}

// For signal handlers: returns true if the signal interrupts this thread's sleep in a call.
CONTROL(bool, standin_interrupts_sleep)()
{
    return std::exchange(thread.asleep, false);
}

// This thread's next update of an executable graph fails with this CUgraphExecUpdateResult.
CONTROL(void, standin_next_update_result)(unsigned result)
{
    thread.next_update_result = result;
}

// Fills up to `n` counters in the order of Class; returns the number of classes.
CONTROL(int, standin_counts)(uint64_t* counts, int n)
{
    for (int i = 0; i < n && i < standin::classes; i++) {
        counts[i] = 0;
        for (const auto& shard : standin::shards)
            counts[i] += shard.calls[i].load(std::memory_order_relaxed);
    }
    return standin::classes;
}
