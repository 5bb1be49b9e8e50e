// SPDX-License-Identifier: Apache-2.0
#include "rows/calls.hpp"

#include "bpf/shared/ioctl.h"
#include "bpf/shared/probe.h"

#include <algorithm>
#include <cmath>

namespace gpusnoop {

// Both sides read the same bytes; padding inside would make equal keys differ.
static_assert(sizeof(call_key) == 72);
static_assert(sizeof(launch_shape) == 32 && sizeof(copy) == 32 && sizeof(copy_sums) == 32);
static_assert(sizeof(memory_call) == 32 && sizeof(memory_sums) == 32);
static_assert(sizeof(call_stats) == 64);
static_assert(sizeof(call_event) == 24 + 72 + 32 + 16);

namespace {

void accumulate(graph_sums& to, const graph_sums& sums, uint64_t sign = 1)
{
    to.kernels += sign * sums.kernels;
    to.setup_ns += sign * sums.setup_ns;
    to.unknown += sign * sums.unknown;
}

// to += sign * sums
void accumulate(memory_sums& to, const memory_sums& sums, uint64_t sign = 1)
{
    to.bytes += sign * sums.bytes;
    to.unsized += sign * sums.unsized;
}

void accumulate(copy_sums& to, const copy_sums& sums, uint64_t sign = 1)
{
    to.bytes += sign * sums.bytes;
    to.small += sign * sums.small;
    to.unsized += sign * sums.unsized;
    to.continued += sign * sums.continued;
}

copy_sums sums_of(const copy& copy)
{
    const bool small = copy.sized && copy.bytes < SMALL_COPY;
    return {copy.bytes, small ? copy.copies : 0, copy.sized ? 0 : copy.copies, uint64_t{copy.copies} - copy.begins};
}

void add_cpu(CallDelta& delta, const call_stats& stats)
{
    delta.count += stats.count;
    delta.total_ns += stats.total_ns;
    delta.max_ns = std::max<uint64_t>(delta.max_ns, stats.max_ns);
    const bool latest = stats.count && stats.last >= delta.last;
    if (latest)
        delta.last = stats.last;
    switch (part_of(delta.key)) {
    case CallPart::copy:
        return accumulate(delta.copy, stats.copy);
    case CallPart::memory:
    case CallPart::driver:
        accumulate(delta.memory, stats.memory);
        if (latest)
            delta.memory.last_bytes = stats.memory.last_bytes;
        return;
    case CallPart::graph:
    case CallPart::graph_life:
        return accumulate(delta.graph, stats.graph);
    case CallPart::launch:
        if (latest)
            delta.shape = stats.shape;
        return;
    case CallPart::wait:
    case CallPart::poll:
        return;
    }
}

} // namespace

CallPart part_of(const call_key& key)
{
    if (key.layer == LAYER_KERNEL)
        return CallPart::driver;
    switch (key.kind) {
    case KIND_COPY:
        return CallPart::copy;
    case KIND_WAIT:
        return key.wait.wait == WAIT_POLL ? CallPart::poll : CallPart::wait;
    case KIND_ALLOC:
    case KIND_FREE:
    case KIND_TRIM:
        return CallPart::memory;
    case KIND_LAUNCH:
    case KIND_HOST_FUNC:
        return CallPart::launch;
    case KIND_GRAPH_LAUNCH:
        return CallPart::graph;
    default:
        return CallPart::graph_life;
    }
}

void add(CallDelta& to, const CallDelta& delta)
{
    to.count += delta.count;
    to.total_ns += delta.total_ns;
    to.max_ns = std::max(to.max_ns, delta.max_ns);
    accumulate(to.copy, delta.copy);
    accumulate(to.memory, delta.memory);
    accumulate(to.graph, delta.graph);
    if (delta.last < to.last)
        return;
    to.last = delta.last;
    to.shape = delta.shape;
    to.memory.last_bytes = delta.memory.last_bytes;
}

void scale(CallDelta& delta, double factor)
{
    const auto times = [factor](auto& sum) {
        sum = static_cast<uint64_t>(std::llround(static_cast<double>(static_cast<int64_t>(sum)) * factor));
    };
    for (uint64_t* sum : {&delta.count, &delta.total_ns})
        times(*sum);
    for (__u64* sum :
         {&delta.copy.bytes, &delta.copy.small, &delta.copy.unsized, &delta.copy.continued, &delta.memory.bytes,
          &delta.memory.unsized, &delta.graph.kernels, &delta.graph.setup_ns, &delta.graph.unknown})
        times(*sum);
}

void CallTable::add(const call_event& event)
{
    call_key key = event.key;
    key.flags &= static_cast<uint8_t>(~CALL_GENERATION);
    CallDelta& delta = spilled_[key];
    delta.key = key;
    delta.total_ns += event.duration_ns;
    delta.max_ns = std::max<uint64_t>(delta.max_ns, event.duration_ns);
    const CallPart part = part_of(event.key);
    delta.count += part == CallPart::copy ? event.copy.copies : 1;
    switch (part) {
    case CallPart::copy:
        return accumulate(delta.copy, sums_of(event.copy));
    case CallPart::memory:
    case CallPart::driver:
        accumulate(delta.memory, {event.memory.bytes, event.memory.sized ? 0U : 1U, 0, 0});
        delta.memory.last_bytes = event.memory.bytes;
        return;
    case CallPart::graph:
    case CallPart::graph_life:
        if (!event.key.result && !(event.key.flags & CALL_RECORDED))
            accumulate(delta.graph, {event.graph.kernels, 0, event.graph.unknown, 0});
        return;
    case CallPart::launch:
        delta.shape = event.shape;
        return;
    case CallPart::wait:
    case CallPart::poll:
        return;
    }
}

void CallTable::read(std::vector<CallDelta>& deltas, Rows which)
{
    // No program adds to these any more, neither of an exited process nor of the generation that is over: nothing is
    // lost between reading and deleting them.
    const auto is_finished = [this](const call_key& key) {
        return retired_.contains(key.image) || (turned_ && (key.flags & CALL_GENERATION) != generation_);
    };

    ByCallKey<CallDelta> sums;
    rows_->for_each([&](const call_key& key, std::span<const call_stats> per_cpu) {
        if (which == Rows::finished && !is_finished(key))
            return;
        CallDelta& sum = sums.try_emplace(key, CallDelta{.key = key}).first->second;
        for (const call_stats& stats : per_cpu)
            add_cpu(sum, stats);
    });
    std::vector<call_key> finished;
    for (const auto& [key, now] : sums) {
        CallDelta delta = now;
        delta.key.flags &= static_cast<uint8_t>(~CALL_GENERATION);
        CallDelta& seen = seen_[key];
        delta.count -= seen.count;
        delta.total_ns -= seen.total_ns;
        delta.max_ns = std::min(delta.max_ns, delta.total_ns); // that of an earlier call may be longer
        accumulate(delta.copy, seen.copy, static_cast<uint64_t>(-1));
        accumulate(delta.memory, seen.memory, static_cast<uint64_t>(-1));
        accumulate(delta.graph, seen.graph, static_cast<uint64_t>(-1));
        seen = now;
        if (delta.count || delta.copy.continued) // a batch of no copies is a call
            deltas.push_back(delta);
        if (is_finished(key)) {
            finished.push_back(key);
            seen_.erase(key);
        }
    }
    rows_->erase(finished);
    retired_.clear();
}

bool CallTable::turn()
{
    if (!can_turn_)
        return false;
    generation_ ^= CALL_GENERATION;
    return turned_ = can_turn_ = rows_->turn(generation_);
}

std::vector<CallDelta> CallTable::drain()
{
    std::vector<CallDelta> deltas;
    for (auto& [key, delta] : spilled_)
        deltas.push_back(delta);
    spilled_.clear();
    // The new rows are read the next time: the maximum of one that is read twice would be that of both times.
    if (own_maxima_ && turn()) {
        read(deltas, Rows::finished);
        return deltas;
    }
    read(deltas);
    // While the table turns, it holds those of both generations that are in use: a quarter is for these.
    if (rows_->taken() >= rows_->capacity() / 4 * 3 && turn())
        read(deltas);
    return deltas;
}

} // namespace gpusnoop
