// SPDX-License-Identifier: Apache-2.0
// Snapshots without a screen: tables one below the other, or JSON.
#pragma once

#include "rows/output.hpp"
#include "screen/snapshot.hpp"

namespace gpusnoop::cudatop {

// rows: how many of the table; 0 all. In JSON there are all rows and columns, the sum and the GPUs first.
void print_text(Output& output, const Snapshot& snapshot, const Arrangement& arrangement, size_t rows);
void print_json(Output& output, const Snapshot& snapshot, const Arrangement& arrangement);

} // namespace gpusnoop::cudatop
