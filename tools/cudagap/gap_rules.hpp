// SPDX-License-Identifier: Apache-2.0
// Why a thread gives the GPU no work, in words: a rule for each part of its time, the largest of which speaks.
#pragma once

#include "tools/cudagap/gap_causes.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// Of a thread, in an interval.
struct GapSigns {
    TimeParts parts{};
    std::optional<GapCause> cause;
    std::optional<GapCauses::Load> load;
    std::string files{};      // that it waited for
    std::string collective{}; // "AllReduce": the last of NCCL that its process called; empty: none
    std::string suspension{}; // "stopped by a signal": it is so now
};

struct GapRule {
    std::string_view name;  // of the part, in JSON
    std::string_view words; // behind the thread's name: "waits in a pipe"
    std::string_view they;  // the same of several: "wait in a pipe"
    std::string_view next;  // the command to be typed next, with PID for the process
};

const GapRule& gap_rule(uint32_t part);
// The command of the rule that speaks.
std::string_view gap_next(const GapSigns& signs);

// "waits in a pipe 96% of its time, for python3 4711 and 7 more, which wait for a CPU 71% of theirs: 9 threads ..."
std::string gap_words(const GapSigns& signs);

} // namespace gpusnoop
