// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attach/probes.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace gpusnoop {

inline std::vector<probe_kind> all_kinds()
{
    std::vector<probe_kind> kinds;
    for (int kind = KIND_NONE + 1; kind < KINDS; kind++)
        kinds.push_back(static_cast<probe_kind>(kind));
    return kinds;
}

inline std::vector<Probe> all_probes()
{
    std::vector<Probe> all;
    for (const Library library : {Library::driver, Library::runtime, Library::nccl, Library::hip})
        std::ranges::move(probes(library, all_kinds()), std::back_inserter(all));
    return all;
}

} // namespace gpusnoop
