// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of what is held, allocation by allocation. It may have a million entries, so it is read
// through, never copied.
#pragma once

#include "../bpf/holding.h"
#include "bpf_map.hpp"
#include "holdings.hpp"

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
    explicit HeldTable(int map_fd) : fd_(map_fd), map_(map_fd) {}

    // Memory that was allocated at least that long before now (CLOCK_MONOTONIC).
    std::map<LeakKey, Leak> leaks(const Holdings& holdings, uint64_t now_ns, uint64_t older_than_ns);

    // Makes room: takes out what went with its context. Without it such an entry stays until its address is given out
    // again, or its process ends.
    void sweep(const Holdings& holdings);

private:
    int fd_;
    HashTable<held_key, held> map_;
};

} // namespace gpusnoop
