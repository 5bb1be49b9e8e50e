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

// Returns the columns for which recorded rows have values, in the usual order. chosen: argument of --columns.
std::vector<TopColumn> replayed_columns(const Moments& moments, const std::vector<std::string>& chosen, bool screen);

// Converts a recorded report to a snapshot. open: id of the opened row.
Snapshot replayed(const Moment& moment, const std::vector<TopColumn>& columns, const std::string& open);

// Returns the recorded verdicts as rows with the columns verdict_columns().
std::vector<Row> replayed_verdicts(const Moment& moment);

// Replays the recording options.replay, starting at options.replay_at. Returns the screen settings that the user
// changed. Throws Error.
Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals);

} // namespace gpusnoop::cudatop
