// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of live allocations. It may have a million entries, so it is scanned, never copied.
#pragma once

#include "base/bpf_object.hpp"
#include "bpf/shared/holding.h"
#include "rows/holdings.hpp"

#include <algorithm>
#include <bpf/libbpf.h>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace gpusnoop {

// Origin of allocations.
struct LeakKey {
    ImageId image;
    uint8_t holding;
    int32_t stack;
    uint64_t caller;
    auto operator<=>(const LeakKey&) const = default;
};

struct Leak {
    Amount amount;
    uint64_t oldest_ns = 0; // age of the oldest allocation
    cgroups cgroup{};       // of one of the allocations
};

// Adds the kernel tables to clean up after exited processes. Scanning a million entries takes a while, so it adds none
// if the processes held nothing. all_known: `holdings` has all allocations.
void add_held_tables(std::vector<const char*>& tables, std::span<const ImageId> exited, const Holdings& holdings,
                     bool all_known = true);

class HeldTable {
public:
    // The table's two maps: the hash, and the trie for entries that do not fit into the hash.
    HeldTable(int hash_fd, int beyond_fd)
        : fd_(hash_fd), beyond_fd_(beyond_fd), room_(max_entries(hash_fd)), map_(hash_fd)
    {}

    // Memory allocated at least older_than_ns before now_ns (CLOCK_MONOTONIC).
    std::map<LeakKey, Leak> leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns);

    // Removes entries of destroyed contexts, once they fill an eighth of the hash. Otherwise such an entry stays until
    // its address is allocated again, or its process exits. Entries in the trie always stay: a trie cannot look up and
    // delete an entry in one step, so a new entry might be deleted.
    void make_room(Holdings& holdings);

private:
    // Calls each(key, entry).
    template<class F>
    void for_each(F&& each);
    template<class F>
    void for_each_beyond(F&& each) const;
    void sweep(const Holdings& holdings);

    int fd_;
    int beyond_fd_;
    size_t room_; // entries of the hash
    HashTable<held_key, held> map_;
};

// Sizes the table so that one process, which may use three quarters of it, has this many entries. Call between open and
// load.
void size_held_table(const BpfObject& bpf, uint32_t entries_of_one);

} // namespace gpusnoop
