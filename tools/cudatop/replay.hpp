// SPDX-License-Identifier: Apache-2.0
// A recording, shown as it was: on the screen, or as tables. Nothing is traced.
#pragma once

#include "base/ending_signals.hpp"
#include "tools/cudatop/columns.hpp"

namespace gpusnoop::cudatop {

// options.replay, from options.replay_at on. What keys chose on the screen. Throws Error.
Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals);

} // namespace gpusnoop::cudatop
