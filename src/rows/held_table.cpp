// SPDX-License-Identifier: Apache-2.0
#include "rows/held_table.hpp"

#include <algorithm>

namespace gpusnoop {

void add_held_tables(std::vector<const char*>& tables, std::span<const ImageId> exited, const Holdings& holdings,
                     bool all_known)
{
    if (!all_known || std::ranges::any_of(exited, [&](const ImageId& image) { return holdings.holds(image); }))
        tables.insert(tables.end(), {"held", "held_beyond", "physical_handles", "physicals", "mappings"});
}

// Iteration over a trie restarts from the beginning if the current key was deleted meanwhile. Keys arrive in ascending
// order, so keys seen before are recognized and skipped.
template<class F>
void HeldTable::for_each_beyond(F&& each) const
{
    const auto bytes = [](const place_key& key) {
        return reinterpret_cast<const std::byte*>(&key) + sizeof(key.prefix);
    };
    constexpr size_t size = sizeof(place_key) - sizeof(place_key::prefix);
    std::optional<place_key> last, greatest;
    for (place_key key{}; bpf_map_get_next_key(beyond_fd_, last ? &*last : nullptr, &key) == 0; last = key) {
        if (greatest && memcmp(bytes(key), bytes(*greatest), size) <= 0)
            continue;
        greatest = key;
        held entry{};
        if (bpf_map_lookup_elem(beyond_fd_, &key, &entry) == 0)
            each(held_key{.image = key.image, .place = key.number}, entry);
    }
}

template<class F>
void HeldTable::for_each(F&& each)
{
    map_.for_each([&](const held_key& key, std::span<const held> values) { each(key, values.front()); });
    for_each_beyond(each);
}

std::map<LeakKey, Leak> HeldTable::leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns)
{
    std::map<LeakKey, Leak> leaks;
    for_each([&](const held_key& key, const held& entry) {
        const uint64_t age = now_ns > entry.since_ns ? now_ns - entry.since_ns : 0;
        const bool counts = is_memory(entry.holding) || entry.holding == HOLDING_IMPORTED;
        if (age < older_than_ns || !counts || holdings.ended(entry.context))
            return;
        Leak& leak = leaks[{key.image, entry.holding, entry.stack, entry.caller}];
        leak.amount.add(1, static_cast<int64_t>(entry.bytes));
        leak.oldest_ns = std::max(leak.oldest_ns, age);
        leak.cgroup = entry.cgroups;
    });
    return leaks;
}

void HeldTable::make_room(Holdings& holdings)
{
    if (holdings.sweepable_entries() <= room_ / 8)
        return;
    sweep(holdings);
    holdings.mark_swept();
}

void HeldTable::sweep(const Holdings& holdings)
{
    std::vector<held_key> stale;
    map_.for_each([&](const held_key& key, std::span<const held> values) {
        if (holdings.ended(values.front().context))
            stale.push_back(key);
    });
    for (const held_key& key : stale) {
        held taken{};
        if (bpf_map_lookup_and_delete_elem(fd_, &key, &taken) == 0 && !holdings.ended(taken.context))
            bpf_map_update_elem(fd_, &key, &taken, BPF_NOEXIST); // restores the entry: the address was allocated again
                                                                 // meanwhile
    }
}

void size_held_table(const BpfObject& bpf, uint32_t entries_of_one)
{
    const uint32_t entries = entries_of_one + entries_of_one / 3;
    const uint32_t in_hash = std::min<uint32_t>(entries, HELD_IN_HASH);
    bpf.set("holds_beyond", entries > in_hash);
    bpf.resize("held", in_hash);
    bpf.resize("held_beyond", std::max(entries - in_hash, 1U));
}

} // namespace gpusnoop
