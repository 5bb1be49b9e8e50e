// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/within.hpp"

#include <algorithm>

namespace gpusnoop::cudatop {

void Within::update(const std::map<Key, Group>& groups)
{
    for (const auto& [key, group] : groups)
        if (row_id(key) == id_)
            images_.insert(group.who.images.begin(), group.who.images.end());
}

bool Within::has(const Group& process) const
{
    return std::ranges::any_of(process.who.images, [this](const ImageId& image) { return images_.contains(image); });
}

} // namespace gpusnoop::cudatop
