// SPDX-License-Identifier: Apache-2.0
#include "rows/holdings.hpp"

#include "base/clock.hpp"
#include "bpf/shared/histogram.h"
#include "bpf/shared/record.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace gpusnoop {

// The kernel side uses the same layout. In kernel memory, each element of the table takes another 48 bytes and a
// pointer.
static_assert(sizeof(held_key) == 16 && sizeof(held) == 56);
static_assert(sizeof(holding_record) == 80);

std::string_view holding_name(uint8_t holding)
{
    constexpr std::array<std::string_view, HOLDINGS> names = {
        "unknown",  "device",   "array",    "pool",   "vmm",   "managed",     "pinned",   "registered",
        "imported", "external", "reserved", "mapped", "graph", "pool-object", "multicast"};
    return holding < names.size() ? names[holding] : names[HOLDING_NONE];
}

bool is_memory(uint8_t holding)
{
    return is_device_memory(holding) || holding == HOLDING_MANAGED || holding == HOLDING_PINNED ||
           holding == HOLDING_REGISTERED;
}

call_key Holdings::row_of(call_key key)
{
    key.kind = KIND_NONE;
    key.layer = 0;
    key.flags = 0;
    key.result = 0;
    key.duration = 0;
    return key;
}

call_key Holdings::row_of(const held_key& key, const held& entry) const
{
    call_key row{};
    row.image = key.image;
    row.device = by_device_ ? entry.device : uint8_t{DEVICE_UNKNOWN};
    row.memory.holding = entry.holding;
    row.memory.size = static_cast<uint16_t>(!by_size_ ? 0 : entry.bytes ? histogram_bucket(entry.bytes) : BUCKET_NONE);
    row.subject = entry.context;
    row.function = entry.function;
    row.tid = entry.tid;
    row.stack = entry.stack;
    row.caller = entry.caller;
    row.cgroups = entry.cgroups;
    return row;
}

void Holdings::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    if (key.result || key.memory.holding == HOLDING_NONE || (key.kind != KIND_ALLOC && key.kind != KIND_FREE))
        return;
    if (key.flags & CALL_UNTRACKED) {
        if (key.kind == KIND_ALLOC)
            approximate_.insert(key.image);
        return;
    }
    if (ended(static_cast<uint32_t>(key.subject)))
        return; // a free that was in flight when its context ended
    auto row = now_.try_emplace(row_of(key)).first;
    const auto sign = key.kind == KIND_ALLOC ? 1 : -1;
    row->second.add(sign * static_cast<int64_t>(delta[CALL_COUNT]), sign * static_cast<int64_t>(delta[MEMORY_BYTES]));
    if (!row->second.count && !row->second.bytes)
        now_.erase(row);
}

void Holdings::learn(const holding_record& record)
{
    if (record.type == RECORD_REPLACED)
        replaced(record);
    else
        context_ended(record);
}

void Holdings::replaced(const holding_record& record)
{
    if (ended(record.held.context))
        return;
    const call_key key = row_of(record.key, record.held);
    auto row = now_.try_emplace(key).first;
    const auto bytes = static_cast<int64_t>(record.held.bytes);
    row->second.add(-1, -bytes);
    released_[key].add(1, bytes);
    if (!row->second.count && !row->second.bytes)
        now_.erase(row);
}

void Holdings::apply_ended_contexts()
{
    if (ending_.empty())
        return;
    std::erase_if(now_, [this](const auto& item) {
        const auto& [row, amount] = item;
        const auto context = static_cast<uint32_t>(row.subject);
        if (!ending_.contains({row.image, context}))
            return false;
        if (!context) {
            // It is unknown which memory belonged to the destroyed context. Memory allocated in an unknown context may
            // have belonged to it.
            if (ends_with_context(row.memory.holding))
                approximate_.insert(row.image);
            return false;
        }
        released_[row].add(amount.count, amount.bytes);
        stale_[row.image] += amount.count_held();
        return true;
    });
    for (const auto& [image, context] : ending_)
        if (context)
            ended_.emplace(context, image);
    ending_.clear();
}

bool Holdings::holds(const ImageId& image) const
{
    return stale_.contains(image) ||
           std::ranges::any_of(now_, [&](const auto& row) { return ImageId(row.first.image) == image; });
}

void Holdings::forget(const std::set<ImageId>& images)
{
    for (Amounts* amounts : {&now_, &released_}) // released_, too, because not every tool drains it
        std::erase_if(*amounts, [&](const auto& row) { return images.contains(row.first.image); });
    std::erase_if(approximate_, [&](const ImageId& image) { return images.contains(image); });
    std::erase_if(stale_, [&](const auto& entries) { return images.contains(entries.first); });
    for (Contexts* contexts : {&ended_, &swept_})
        std::erase_if(*contexts, [&](const auto& context) { return images.contains(context.second); });
}

uint64_t Holdings::sweepable_entries() const
{
    uint64_t all = ended_.size();
    for (const auto& [image, entries] : stale_)
        all += entries;
    return all;
}

void Holdings::mark_swept()
{
    stale_.clear();
    swept_ = std::exchange(ended_, {});
}

// The kernel side uses the same layout.
static_assert(sizeof(place_key) == 28 && sizeof(range_key) == 24);

void EndedEpochs::sweep()
{
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    if (begin < not_before_ns_)
        return;
    std::map<ImageId, uint32_t> newest, changed;
    spaces_.for_each([&](const image& image, std::span<const address_space> values) {
        const uint32_t epoch = newest[image] = values.front().epoch;
        const auto before = swept_.find(image);
        if (epoch != (before == swept_.end() ? 0 : before->second))
            changed[image] = epoch;
    });
    swept_ = std::move(newest);
    if (changed.empty())
        return;
    const auto is_over = [&]<class Key>(Key key, const std::byte* bytes) {
        memcpy(&key, bytes, sizeof(key));
        const auto now = changed.find(key.image);
        // `<` instead of `!=`: a newer epoch may have begun after spaces_ was read, and its records must be kept
        return now != changed.end() && key.epoch < now->second;
    };
    for (const int fd : places_fds_)
        erase_keys(fd, [&](const std::byte* key) { return is_over(place_key{}, key); });
    erase_keys(ranges_fd_, [&](const std::byte* key) { return is_over(range_key{}, key); });
    const uint64_t end = clock_ns(CLOCK_MONOTONIC);
    not_before_ns_ = end + 20 * (end - begin);
}

} // namespace gpusnoop
