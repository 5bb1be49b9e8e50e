// SPDX-License-Identifier: Apache-2.0
#include "calls/caller_stacks.hpp"

#include "maps/stack_trace.hpp"

namespace gpusnoop {

void CallerStacks::expect(const ImageId& image, int32_t stack)
{
    if (stack >= 0 && expected_.emplace(image, stack).second)
        frames(image, stack);
}

std::vector<std::string> CallerStacks::frames(const ImageId& image, int32_t stack)
{
    return names_.frames(image, stack_trace(fd_, stack));
}

void CallerStacks::forget(const ImageId& image)
{
    names_.forget(image);
    std::erase_if(expected_, [&](const auto& one) { return one.first == image; });
}

} // namespace gpusnoop
