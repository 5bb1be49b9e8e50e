// SPDX-License-Identifier: Apache-2.0
// The tables of a recording, shown again: as they were, or their rows added up by fewer keys and over longer times.
#pragma once

#include "base/options.hpp"

#include <string_view>

namespace gpusnoop {

// options.replay, from options.replay_at on. Throws Error and UsageError.
void replay_tables(std::string_view tool, const ReplayView& view, const Options& options);

} // namespace gpusnoop
