// SPDX-License-Identifier: Apache-2.0
// One row of cudatop in full: the tables and histograms that the single tools would show of its processes.
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

// What the interval had, and who can tell more of it.
struct Interval {
    std::span<const CallDelta> calls;
    std::span<const Waiting::Part> waits;
    std::span<const driver_call> pending;
    Holdings& holdings;
    const std::set<ImageId>& ended;
    KernelNames& names;
    std::function<std::vector<std::string>(const ImageId& image, int32_t stack, uint64_t caller)> frames;
};

// Whose the row is: who started what, when, and what is wrong with it.
DetailPart processes_part(const std::string& id, const std::set<ImageId>& images, const Snapshot& snapshot,
                          const Context& context);

// The row's processes, and its thread where rows are threads.
std::vector<DetailPart> detail(const Key& key, const std::set<ImageId>& images, const Interval& interval,
                               const SinceOpened& since, const Context& context);

} // namespace gpusnoop::cudatop
