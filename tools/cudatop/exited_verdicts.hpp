// SPDX-License-Identifier: Apache-2.0
// Verdicts about processes that exited while --why watched, beside those of the last interval.
#pragma once

#include "tools/cudatop/verdict.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

class ExitedVerdicts {
public:
    using Frames = std::function<std::vector<std::string>(const Verdict&)>;

    // Verdicts of an interval that is not the last one.
    void add(std::span<const Verdict* const> verdicts, const Frames& frames);
    // Both, the worst first. Of a restart loop, one process stands for all.
    std::vector<WhyLine> with(std::span<const Verdict* const> of_last_interval, const Frames& frames);
    // Lines that there were too many of.
    uint64_t dropped() const { return dropped_; }

    // Processes that have been forgotten since they exited.
    void forgot_process() { processes_++; }
    size_t processes() const { return processes_; }

private:
    void fold();

    std::deque<WhyLine> lines_; // the oldest first
    std::set<uint64_t> loops_;  // groups of processes that restart each other
    size_t processes_ = 0;
    uint64_t dropped_ = 0;
};

} // namespace gpusnoop::cudatop
