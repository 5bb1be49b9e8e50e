// SPDX-License-Identifier: Apache-2.0
// The tables of a recording, shown again: as they were, or their rows added up by fewer keys and over longer times.
#pragma once

#include "base/options.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// What a tool was asked for, beside what all tools are.
struct ReplayView {
    std::optional<std::string> by{}; // nullopt: as recorded
    std::string sort{};              // empty: as recorded
    std::string usual_sort{};        // of rows that are added up
    std::string names = "short";     // how kernels are named
    bool adds_up = true;             // false: its rows are shown as they are, or not at all
};

// options.replay, from options.replay_at on. Throws Error and UsageError.
void replay_tables(std::string_view tool, const ReplayView& view, const Options& options);

} // namespace gpusnoop
