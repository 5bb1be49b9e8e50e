// SPDX-License-Identifier: Apache-2.0
#include "probe_kinds.hpp"

#include <algorithm>

namespace gpusnoop {

// Sets are called synchronous and return before they are done; they wait for nothing.
bool waits(const probe_row& row)
{
    if (row.kind == KIND_COPY)
        return !row.asynchronous && row.direction != DIRECTION_SET;
    return row.kind == KIND_WAIT || (row.kind == KIND_FREE && row.wait == WAIT_FREE && !row.asynchronous);
}

// Not of objects and addresses that nothing is copied to or from.
bool tells_memory(const probe_row& row)
{
    return (row.kind != KIND_ALLOC && row.kind != KIND_FREE) || row.memory != MEMORY_UNKNOWN;
}

void append_probes(std::vector<Probe>& to, Library library, std::span<const probe_kind> kinds)
{
    for (Probe& probe : probes(library, kinds))
        to.push_back(std::move(probe));
}

std::vector<unsigned> probes_of(std::span<const Probe> probes, std::span<const probe_kind> kinds)
{
    std::vector<unsigned> found;
    for (unsigned i = 0; i < probes.size(); i++)
        if (std::ranges::find(kinds, probes[i].row.kind) != kinds.end())
            found.push_back(i);
    return found;
}

} // namespace gpusnoop
