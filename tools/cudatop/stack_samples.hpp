// SPDX-License-Identifier: Apache-2.0
// Where calls come from of which only some have their stack taken: how many of these have which.
#pragma once

#include "base/clock.hpp"
#include "rows/calls.hpp"
#include "screen/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// The kernel side's table of stacks has room for so many, and forgets none by itself. One that comes again gets its
// place back.
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

class StackSamples {
public:
    using Frames = std::function<std::vector<std::string>(const ImageId& image, int32_t stack, uint64_t caller)>;

    void add(std::span<const CallDelta> calls);
    bool empty() const { return counts_.empty(); }

    // `calls`: "launches", in words. Stacks that read alike are one row, whatever process they are of.
    DetailPart part(std::string_view calls, std::string_view title, const Frames& frames) const;

private:
    struct Stack {
        ImageId image;
        int32_t stack;
        uint64_t caller;
        auto operator<=>(const Stack&) const = default;
    };
    std::map<Stack, uint64_t> counts_;
};

} // namespace gpusnoop::cudatop
