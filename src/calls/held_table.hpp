// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of what is held, allocation by allocation. It may have a million entries, so it is read
// through, never copied.
#pragma once

#include "bpf/shared/holding.h"
#include "calls/holdings.hpp"
#include "maps/bpf_map.hpp"

#include <compare>
#include <cstdint>
#include <map>

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

class HeldTable {
public:
    // It has room for so many entries.
    HeldTable(int map_fd, uint32_t entries) : fd_(map_fd), entries_(entries), map_(map_fd) {}

    // Memory that was allocated at least that long before now (CLOCK_MONOTONIC).
    std::map<LeakKey, Leak> leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns);

    // Takes out what went with its context, once that is an eighth of the room. Without it such an entry stays until
    // its address is given out again, or its process ends.
    void make_room(Holdings& holdings);

private:
    void sweep(const Holdings& holdings);

    int fd_;
    uint32_t entries_;
    HashTable<held_key, held> map_;
};

} // namespace gpusnoop
