// SPDX-License-Identifier: Apache-2.0
// --replay: shows the tables of a recording, unchanged, or with rows merged by fewer keys or over longer times.
#pragma once

#include "base/options.hpp"

#include <string_view>

namespace gpusnoop {

// Shows options.replay, starting at options.replay_at. Throws Error and UsageError.
void replay_tables(std::string_view tool, const ReplayView& view, const Options& options);

} // namespace gpusnoop
