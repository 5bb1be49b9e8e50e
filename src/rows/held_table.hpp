// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of what is held, allocation by allocation. It may have a million entries, so it is read
// through, never copied.
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

// Who allocated.
struct LeakKey {
    ImageId image;
    uint8_t holding;
    int32_t stack;
    uint64_t caller;
    auto operator<=>(const LeakKey&) const = default;
};

struct Leak {
    Amount amount;
    uint64_t oldest_ns = 0; // age
    cgroups cgroup{};       // of one of them
};

// Adds the tables of the kernel side that have rows of what images, which have ended, still held: to walk through a
// million entries takes a while, so not for those that hold nothing, unless that is not known.
void add_held_tables(std::vector<const char*>& tables, std::span<const ImageId> gone, const Holdings& holdings,
                     bool all_known = true);

class HeldTable {
public:
    // Its two maps: the hash, and the trie for what finds no room there.
    HeldTable(int hash_fd, int beyond_fd)
        : fd_(hash_fd), beyond_fd_(beyond_fd), room_(max_entries(hash_fd)), map_(hash_fd)
    {}

    // Memory that was allocated at least that long before now (CLOCK_MONOTONIC).
    std::map<LeakKey, Leak> leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns);

    // Takes out what went with its context, once that is an eighth of the hash. Without it such an entry stays until
    // its address is given out again, or its process ends; so do those in the trie, which gives no entry out as it
    // takes it out: it might have become another one.
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
    size_t room_; // in the hash
    HashTable<held_key, held> map_;
};

// Between open and load: makes room for so many entries of one process, whose share is three quarters of the table.
void size_held_table(const BpfObject& bpf, uint32_t entries_of_one);

} // namespace gpusnoop
