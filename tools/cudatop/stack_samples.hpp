// SPDX-License-Identifier: Apache-2.0
// Where calls come from of which only some have their stack taken: how many of these have which.
#pragma once

#include "rows/calls.hpp"
#include "screen/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

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
