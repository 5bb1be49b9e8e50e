// SPDX-License-Identifier: Apache-2.0
#include "holdings.hpp"

#include "../bpf/histogram.h"
#include "../bpf/record.h"

#include <algorithm>
#include <array>

namespace gpusnoop {

// Both sides read the same bytes; the kernel's element of the table is 48 bytes and a pointer larger.
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
    if (ended_.contains(static_cast<uint32_t>(key.subject)))
        return; // a free that was under way when its context ended
    auto row = now_.try_emplace(row_of(key)).first;
    const auto sign = key.kind == KIND_ALLOC ? 1 : -1;
    row->second.add(sign * static_cast<int64_t>(delta.count), sign * static_cast<int64_t>(delta.memory.bytes));
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
    if (ended_.contains(record.held.context))
        return;
    const call_key key = row_of(record.key, record.held);
    auto row = now_.try_emplace(key).first;
    const auto bytes = static_cast<int64_t>(record.held.bytes);
    row->second.add(-1, -bytes);
    released_[key].add(1, bytes);
    if (!row->second.count && !row->second.bytes)
        now_.erase(row);
}

void Holdings::context_ended(const holding_record& record)
{
    auto mine = [&](const call_key& key) {
        return ImageId(key.image) == ImageId(record.key.image) && key.subject == record.context &&
               ends_with_context(key.memory.holding);
    };
    if (!record.context) {
        // Nobody knows what was in it: perhaps what was allocated in a context that is not known.
        if (std::ranges::any_of(now_, [&](const auto& row) { return mine(row.first); }))
            approximate_.insert(record.key.image);
        return;
    }
    ended_.insert(record.context);
    std::erase_if(now_, [&](const auto& row) {
        if (!mine(row.first))
            return false;
        released_[row.first].add(row.second.count, row.second.bytes);
        stale_ += static_cast<uint64_t>(std::max<int64_t>(row.second.count, 0));
        return true;
    });
}

bool Holdings::holds(const ImageId& image) const
{
    return std::ranges::any_of(now_, [&](const auto& row) { return ImageId(row.first.image) == image; });
}

void Holdings::forget(const std::set<ImageId>& images)
{
    std::erase_if(now_, [&](const auto& row) { return images.contains(row.first.image); });
    std::erase_if(approximate_, [&](const ImageId& image) { return images.contains(image); });
}

} // namespace gpusnoop
