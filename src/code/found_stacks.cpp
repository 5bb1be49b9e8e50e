// SPDX-License-Identifier: Apache-2.0
#include "code/found_stacks.hpp"

namespace gpusnoop {

int32_t FoundStacks::number_of(const std::vector<uint64_t>& addresses)
{
    if (addresses.empty())
        return -1;
    if (const auto known = numbers_.find(addresses); known != numbers_.end())
        return known->second;
    if (stacks_.size() == most)
        return -1;
    const auto added = numbers_.emplace(addresses, first + static_cast<int32_t>(stacks_.size())).first;
    stacks_.emplace_back(added->first);
    return added->second;
}

std::span<const uint64_t> FoundStacks::of(int32_t number) const
{
    const auto at = static_cast<size_t>(number - first);
    return is(number) && at < stacks_.size() ? stacks_[at] : std::span<const uint64_t>();
}

} // namespace gpusnoop
