// SPDX-License-Identifier: Apache-2.0
#include "tools/gpualloc/allocations.hpp"

#include <bpf/bpf.h>

namespace gpusnoop {
namespace {

constexpr int out_of_memory = 2; // CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation

template<class Counts>
Amount sum(const std::array<Amount, HOLDINGS>& held, Counts&& counts)
{
    Amount total;
    for (uint8_t i = 0; i < HOLDINGS; i++)
        if (counts(i))
            total.add(held[i].count, held[i].bytes);
    return total;
}

} // namespace

Amount AllocationGroup::device() const
{
    return sum(held, [](uint8_t holding) { return is_device_memory(holding) != 0; });
}

Amount AllocationGroup::memory() const
{
    return sum(held, is_memory);
}

Amount AllocationGroup::all() const
{
    return sum(held, [](uint8_t) { return true; });
}

bool AllocationGroup::idle() const
{
    return !memory().count && !allocs && !frees && !released && !failures && !unknown_frees && !trims && !captured;
}

std::string_view operation_name(uint8_t kind)
{
    return kind == KIND_ALLOC ? "alloc" : kind == KIND_TRIM ? "trim" : "free";
}

void AllocationKey::set(const AllocationSettings& settings, const call_key& call)
{
    if (settings.holding)
        holding = call.memory.holding;
    if (settings.operation)
        operation = call.kind;
    if (settings.size && call.memory.size != BUCKET_NONE)
        octave = static_cast<uint8_t>(log2_floor(Histogram::bucket_low(call.memory.size) | 1));
}

void AllocationGroups::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    const uint8_t holding = key.memory.holding;
    AllocationGroup& group = called(key);
    group.total_ns += delta[CALL_TOTAL_NS];
    group.max_ns = std::max(group.max_ns, delta[CALL_MAX_NS]);
    if (key.duration != BUCKET_NONE)
        group.duration.add(key.duration, delta[CALL_COUNT]);
    if (key.result) {
        group.failures += delta[CALL_COUNT];
        const bool ran_out = key.kind == KIND_ALLOC && key.result == out_of_memory;
        if (ran_out)
            group.out_of_memory += delta[CALL_COUNT];
        if ((ran_out || (settings_.view.result && key.kind == KIND_ALLOC)) && delta[CALL_LAST] >= group.last_failed) {
            group.last_failed = delta[CALL_LAST];
            group.failed_bytes = delta[MEMORY_LAST_BYTES];
        }
        if (key.kind == KIND_ALLOC && settings_.view.result && key.memory.size != BUCKET_NONE)
            group.sizes.add(key.memory.size, delta[CALL_COUNT]); // with -x, histograms of sizes cover failed
                                                                 // allocations
        return;
    }
    if (key.flags & CALL_RECORDED)
        group.captured += delta[CALL_COUNT];
    if (key.kind == KIND_TRIM) {
        group.trims += delta[CALL_COUNT];
    } else if (key.kind == KIND_FREE && holding == HOLDING_NONE) {
        group.unknown_frees += delta[CALL_COUNT];
    } else if (counts(holding) && key.kind == KIND_FREE) {
        group.frees += delta[CALL_COUNT];
        group.freed_bytes += delta[MEMORY_BYTES];
    } else if (counts(holding)) {
        group.allocs += delta[CALL_COUNT];
        group.allocated_bytes += delta[MEMORY_BYTES];
        group.unsized += delta[MEMORY_UNSIZED];
        if (key.flags & CALL_UNTRACKED)
            group.untracked += delta[CALL_COUNT];
        if (key.memory.size != BUCKET_NONE)
            group.sizes.add(key.memory.size, delta[CALL_COUNT]);
    }
}

void AllocationGroups::add_held(Holdings& holdings, const std::set<ImageId>& ended)
{
    for (const auto& [row, amount] : holdings.now()) {
        if (ended.contains(row.image)) {
            add_released(row, amount);
            continue;
        }
        AllocationGroup& group = group_of(row);
        group.held.at(row.memory.holding).add(amount.count, amount.bytes);
        group.approximate |= holdings.approximate(row.image);
    }
    for (const auto& [row, amount] : holdings.drain_released())
        add_released(row, amount);
}

void AllocationGroups::add_peaks(int map_fd)
{
    for (auto& [key, group] : groups_) {
        size_t with_memory = 0;
        uint64_t peak = 0;
        for (const ImageId& id : group.who.images) {
            const image image = id;
            held_bytes bytes{};
            if (bpf_map_lookup_elem(map_fd, &image, &bytes) || !bytes.peak)
                continue;
            with_memory++;
            peak = bytes.peak;
        }
        if (with_memory <= 1)
            group.peak_bytes = peak;
    }
}

void AllocationGroups::add_nvml(NvmlFigures& nvml)
{
    nvml.refresh();
    for (auto& [key, group] : groups_)
        group.nvml_bytes = nvml.memory_of(group.who.images);
}

void AllocationGroups::add_released(const call_key& row, const Amount& amount)
{
    if (!counts(row.memory.holding))
        return;
    AllocationGroup& group = group_of(row);
    group.released += static_cast<uint64_t>(amount.count);
    group.released_bytes += static_cast<uint64_t>(amount.bytes);
}

} // namespace gpusnoop
