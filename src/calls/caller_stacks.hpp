// SPDX-License-Identifier: Apache-2.0
// User stacks that the kernel side has kept by a number, with the names of their frames: those are asked for while the
// process lives, for it may have ended when its stack is shown.
#pragma once

#include "names/stack_names.hpp"
#include "proc/image.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

class CallerStacks {
public:
    explicit CallerStacks(int stacks_fd) : fd_(stacks_fd) {}

    // It will be shown.
    void expect(const ImageId& image, int32_t stack);
    // Innermost first; none where the stack is not known.
    std::vector<std::string> frames(const ImageId& image, int32_t stack);
    std::vector<std::string> frames(const ImageId& image, std::span<const uint64_t> addresses)
    {
        return names_.frames(image, addresses);
    }
    // Now and then: takes what has come late.
    void tick() { names_.tick(); }
    void forget(const ImageId& image);

private:
    int fd_;
    StackNames names_;
    std::set<std::pair<ImageId, int32_t>> expected_;
};

} // namespace gpusnoop
