// SPDX-License-Identifier: Apache-2.0
// A recording, shown as it was: on the screen, or as tables. Nothing is traced.
#pragma once

#include "base/ending_signals.hpp"
#include "output/recording.hpp"
#include "screen/snapshot.hpp"
#include "tools/cudatop/columns.hpp"

#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// A moment of a recording, as the screen and tables show it: what lines of JSON have, and no more.

// Those of the rows of a recording, in their usual order. chosen: as of --columns.
std::vector<TopColumn> replayed_columns(const Moments& moments, const std::vector<std::string>& chosen, bool screen);

// open: id of the row that is shown in full.
Snapshot replayed(const Moment& moment, const std::vector<TopColumn>& columns, const std::string& open);

// What was wrong, as rows of verdict_columns().
std::vector<Row> replayed_verdicts(const Moment& moment);

// options.replay, from options.replay_at on. What keys chose on the screen. Throws Error.
Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals);

} // namespace gpusnoop::cudatop
