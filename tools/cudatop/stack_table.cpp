// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/stack_table.hpp"

#include "bpf/shared/call.h"

#include <bpf/bpf.h>
#include <vector>

namespace gpusnoop::cudatop {

bool StackTable::due()
{
    constexpr uint64_t pause_ns = 30'000'000'000;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - swept_ns_ < pause_ns)
        return false;
    swept_ns_ = now;
    return true;
}

void StackTable::keep(const std::set<int32_t>& stacks) const
{
    std::set<uint32_t> kept;
    for (const int32_t stack : stacks)
        kept.insert(static_cast<uint32_t>(stack & ~STACK_WITHOUT_FIRST));
    std::vector<uint32_t> idle;
    uint32_t id = 0;
    for (const uint32_t* before = nullptr; bpf_map_get_next_key(map_fd_, before, &id) == 0; before = &id)
        if (!kept.contains(id))
            idle.push_back(id);
    for (const uint32_t stack : idle)
        bpf_map_delete_elem(map_fd_, &stack);
}

} // namespace gpusnoop::cudatop
