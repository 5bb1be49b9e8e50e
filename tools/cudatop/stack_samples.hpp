// SPDX-License-Identifier: Apache-2.0
// Counts of sampled call stacks, and cleanup of the kernel's stack table.
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

// The kernel's stack table. Its size is limited, and a stack stays in the table until it is deleted. A stack that
// occurs again has the same id.
class StackTable {
public:
    explicit StackTable(int map_fd) : map_fd_(map_fd) {}

    bool due(); // true once every 30 s, when keep() should be called
    // Deletes all stacks except the stacks with these ids (as in call_key).
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

    // Equal stacks are one row, even if they are from different processes. calls: name of the calls, such as
    // "launches", for the title.
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
