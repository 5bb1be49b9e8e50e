// SPDX-License-Identifier: Apache-2.0
// Replay of a recording, on the screen or as tables. Nothing is traced.
#pragma once

#include "base/ending_signals.hpp"
#include "output/recording.hpp"
#include "screen/snapshot.hpp"
#include "tools/cudatop/columns.hpp"

#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// The columns that the recorded rows have, in their usual order. chosen: the argument of --columns.
std::vector<TopColumn> replayed_columns(const Moments& moments, const std::vector<std::string>& chosen, bool screen);

// A moment of a recording as a snapshot, made from its JSON lines. open: id of the opened row.
Snapshot replayed(const Moment& moment, const std::vector<TopColumn>& columns, const std::string& open);

// The recorded verdicts, as rows of verdict_columns().
std::vector<Row> replayed_verdicts(const Moment& moment);

// Replays options.replay from options.replay_at on. Returns the screen settings that the user changed. Throws Error.
Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals);

} // namespace gpusnoop::cudatop
