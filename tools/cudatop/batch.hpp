// SPDX-License-Identifier: Apache-2.0
// Snapshots printed as tables or JSON, without a screen.
#pragma once

#include "rows/output.hpp"
#include "screen/snapshot.hpp"

namespace gpusnoop::cudatop {

// rows: maximum number of rows; 0 means all.
void print_text(Output& output, const Snapshot& snapshot, const Arrangement& arrangement, size_t rows);
// Prints all rows and columns. Prints the sum first and the GPUs last.
void print_json(Output& output, const Snapshot& snapshot, const Arrangement& arrangement);

} // namespace gpusnoop::cudatop
