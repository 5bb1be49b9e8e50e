// SPDX-License-Identifier: Apache-2.0
#include "who/descendants.hpp"

namespace gpusnoop {

std::vector<pid_t> Descendants::forked(pid_t child, pid_t parent)
{
    if (!all_.contains(parent)) {
        if (of_others_.size() < others_max)
            of_others_.emplace(parent, child);
        return {};
    }
    std::vector<pid_t> found{child};
    for (size_t i = 0; i < found.size(); i++) {
        all_.insert(found[i]);
        const auto [first, last] = of_others_.equal_range(found[i]);
        for (auto next = first; next != last; ++next)
            if (!all_.contains(next->second))
                found.push_back(next->second);
        of_others_.erase(first, last);
    }
    return found;
}

} // namespace gpusnoop
