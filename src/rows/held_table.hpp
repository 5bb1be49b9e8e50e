// SPDX-License-Identifier: Apache-2.0
// Reader of the kernel side's table of live allocations. The table may have a million entries, so it is scanned in
// place, never copied.
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

// Origin of allocations: process, kind of memory and call stack.
struct LeakKey {
    ImageId image;
    uint8_t holding;
    int32_t stack;
    uint64_t caller;
    auto operator<=>(const LeakKey&) const = default;
};

struct Leak {
    Amount amount;
    uint64_t oldest_ns = 0; // age of the oldest allocation, in ns
    cgroups cgroup{};       // cgroup of one of the allocations
};

// Adds to `tables` the names of kernel tables from which entries of these exited processes must be removed. Adds none
// if the processes held nothing, since scanning a million entries takes long. all_known: `holdings` contains all
// allocations; if false, the tables are always added.
void add_held_tables(std::vector<const char*>& tables, std::span<const ImageId> exited, const Holdings& holdings,
                     bool all_known = true);

class HeldTable {
public:
    // The table consists of two maps: a hash, and a trie for entries that do not fit into the hash.
    HeldTable(int hash_fd, int beyond_fd)
        : fd_(hash_fd), beyond_fd_(beyond_fd), room_(max_entries(hash_fd)), map_(hash_fd)
    {}

    // Returns memory allocated at least older_than_ns before now_ns (CLOCK_MONOTONIC).
    std::map<LeakKey, Leak> leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns);

    // Removes entries of destroyed contexts from the hash once they fill an eighth of it. Entries not removed stay
    // until their address is allocated again or their process exits. In the trie, entries of destroyed contexts always
    // stay: a trie cannot look up and delete an entry in one step, so a new entry might be deleted by mistake.
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
    size_t room_; // maximum number of entries in the hash
    HashTable<held_key, held> map_;
};

// Sizes the table so that a single process, which may use three quarters of it, can have entries_of_one entries. Call
// between open and load.
void size_held_table(const BpfObject& bpf, uint32_t entries_of_one);

} // namespace gpusnoop
