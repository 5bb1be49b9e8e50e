// SPDX-License-Identifier: Apache-2.0
// Calls and waits of an interval, kept so that the screen can group them differently.
#pragma once

#include "tools/cudatop/groups.hpp"
#include "tools/cudatop/head.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace gpusnoop::cudatop {

struct Counted {
    std::vector<CallDelta> calls;
    std::vector<Waiting::Part> waits;
    std::vector<driver_call> pending;
    uint64_t wall_ns = 0;
    double seconds = 0;
    Facts facts;

    void add_to(Groups& groups) const
    {
        for (const CallDelta& delta : calls)
            groups.add(delta);
        for (const Waiting::Part& part : waits)
            groups.add(part);
        for (const driver_call& call : pending)
            groups.add(call, clock_ns(CLOCK_MONOTONIC));
    }

    void forget(const std::set<ImageId>& images)
    {
        const auto forgotten = [&images](const auto& call) { return images.contains(call.key.image); };
        std::erase_if(calls, forgotten);
        std::erase_if(waits, forgotten);
        std::erase_if(pending, forgotten);
    }
};

} // namespace gpusnoop::cudatop
