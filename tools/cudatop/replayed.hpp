// SPDX-License-Identifier: Apache-2.0
// A moment of a recording, as the screen and tables show it: what lines of JSON have, and no more.
#pragma once

#include "output/moments.hpp"
#include "screen/snapshot.hpp"

#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// Those of the rows of a recording, in their usual order. chosen: as of --columns.
std::vector<TopColumn> replayed_columns(const Moments& moments, const std::vector<std::string>& chosen, bool screen);

// open: id of the row that is shown in full.
Snapshot replayed(const Moment& moment, const std::vector<TopColumn>& columns, const std::string& open);

// What was wrong, as rows of verdict_columns().
std::vector<Row> replayed_verdicts(const Moment& moment);

} // namespace gpusnoop::cudatop
