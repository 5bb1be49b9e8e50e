// SPDX-License-Identifier: Apache-2.0
// Replay of a recording's tables (--replay). Tables are printed as recorded, or with rows grouped by fewer keys or
// combined over longer intervals.
#pragma once

#include "base/options.hpp"

#include <string_view>

namespace gpusnoop {

// Prints the recording in the file options.replay, starting at the time options.replay_at. Throws Error and UsageError.
void replay_tables(std::string_view tool, const ReplayView& view, const Options& options);

} // namespace gpusnoop
