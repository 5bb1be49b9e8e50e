// SPDX-License-Identifier: Apache-2.0
// Page of an opened row, with the tables and histograms that the other tools would show for its processes.
#pragma once

#include "rows/call_view.hpp"
#include "rows/calls.hpp"
#include "tools/cudatop/columns.hpp"
#include "tools/cudatop/live.hpp"

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// The calls of the last interval, and lookups for names and stacks.
struct Interval {
    std::span<const CallDelta> calls;
    std::span<const Waiting::Part> waits;
    std::span<const driver_call> pending;
    Holdings& holdings;
    const std::set<ImageId>& ended;
    KernelNames& names;
    std::function<std::vector<std::string>(const ImageId& image, int32_t stack, uint64_t caller)> frames;
};

// The processes of the row (command, user, owner, start, parent), then the verdicts on the row.
DetailPart processes_part(const std::string& id, const std::set<ImageId>& images, const Snapshot& snapshot,
                          const Context& context);

// The tables and histograms on the page of an opened row. They cover the row's processes, or its thread if rows are
// threads.
std::vector<DetailPart> detail(const Key& key, const std::set<ImageId>& images, const Interval& interval,
                               const SinceOpened& since, const Context& context);

} // namespace gpusnoop::cudatop
