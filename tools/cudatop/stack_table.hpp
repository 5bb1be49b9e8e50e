// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of stacks has room for so many, and forgets none by itself. One that comes again gets its
// place back.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <set>

namespace gpusnoop::cudatop {

class StackTable {
public:
    explicit StackTable(int map_fd) : map_fd_(map_fd) {}

    bool due(); // now and then
    // Takes out all but those, which are as calls have them.
    void keep(const std::set<int32_t>& stacks) const;

private:
    int map_fd_;
    uint64_t swept_ns_ = clock_ns(CLOCK_MONOTONIC);
};

} // namespace gpusnoop::cudatop
