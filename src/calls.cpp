// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include "../bpf/ioctl.h"
#include "../bpf/probe.h"

#include <algorithm>

namespace gpusnoop {

// Both sides read the same bytes; padding inside would make equal keys differ.
static_assert(sizeof(call_key) == 72);
static_assert(sizeof(launch_shape) == 32 && sizeof(copy) == 32 && sizeof(copy_sums) == 32);
static_assert(sizeof(memory_call) == 32 && sizeof(memory_sums) == 32);
static_assert(sizeof(call_stats) == 64);
static_assert(sizeof(call_event) == 24 + 72 + 32 + 16);

namespace {

bool is_copy(const call_key& key)
{
    return key.kind == KIND_COPY;
}

// Calls that are about bytes: of memory, or of what a driver is asked for.
bool is_memory(const call_key& key)
{
    return key.kind == KIND_ALLOC || key.kind == KIND_FREE || key.kind == KIND_TRIM || key.kind >= ENTRY_IOCTL;
}

// By cudagraph: elsewhere the launch of a graph is a launch like others, with no sums.
bool is_graph(const call_key& key)
{
    return key.kind == KIND_GRAPH_LAUNCH || key.kind == KIND_CAPTURE_END || key.kind == KIND_GRAPH_INSTANTIATE;
}

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
    if (is_copy(delta.key)) {
        accumulate(delta.copy, stats.copy);
    } else if (is_memory(delta.key)) {
        accumulate(delta.memory, stats.memory);
        if (latest)
            delta.memory.last_bytes = stats.memory.last_bytes;
    } else if (is_graph(delta.key)) {
        accumulate(delta.graph, stats.graph);
    } else if (latest) {
        delta.shape = stats.shape;
    }
}

} // namespace

void CallTable::add(const call_event& event)
{
    CallDelta& delta = spilled_[event.key];
    delta.key = event.key;
    delta.total_ns += event.duration_ns;
    delta.max_ns = std::max<uint64_t>(delta.max_ns, event.duration_ns);
    if (is_copy(event.key)) {
        delta.count += event.copy.copies;
        accumulate(delta.copy, sums_of(event.copy));
        return;
    }
    delta.count++;
    if (is_memory(event.key)) {
        accumulate(delta.memory, {event.memory.bytes, event.memory.sized ? 0U : 1U, 0, 0});
        delta.memory.last_bytes = event.memory.bytes;
    } else if (is_graph(event.key)) {
        if (!event.key.result && !(event.key.flags & CALL_RECORDED))
            accumulate(delta.graph, {event.graph.kernels, 0, event.graph.unknown, 0});
    } else {
        delta.shape = event.shape;
    }
}

std::vector<CallDelta> CallTable::take()
{
    std::vector<CallDelta> deltas;
    for (auto& [key, delta] : spilled_)
        deltas.push_back(delta);
    spilled_.clear();
    std::vector<call_key> gone;
    map_.for_each([&](const call_key& key, std::span<const call_stats> per_cpu) {
        CallDelta delta{.key = key};
        for (const call_stats& stats : per_cpu)
            add_cpu(delta, stats);
        CallDelta& seen = seen_[key];
        const CallDelta now = delta;
        delta.count -= seen.count;
        delta.total_ns -= seen.total_ns;
        accumulate(delta.copy, seen.copy, static_cast<uint64_t>(-1));
        accumulate(delta.memory, seen.memory, static_cast<uint64_t>(-1));
        accumulate(delta.graph, seen.graph, static_cast<uint64_t>(-1));
        seen = now;
        if (retired_.contains(key.image))
            gone.push_back(key);
        if (delta.count || delta.copy.continued) // a batch of no copies is a call
            deltas.push_back(delta);
    });
    // A process that has ended adds nothing any more, so nothing is lost between reading and deleting.
    for (const call_key& key : gone) {
        map_.erase(key);
        seen_.erase(key);
    }
    retired_.clear();
    return deltas;
}

} // namespace gpusnoop
