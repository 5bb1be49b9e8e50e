// SPDX-License-Identifier: Apache-2.0
// A line that is about a process, not a call of it: when, who, whose, and what a tool has to say.
#pragma once

#include "processes.hpp"
#include "table.hpp"

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace gpusnoop {

std::vector<Column> process_line_columns(std::initializer_list<Column> own);

// own: in the order of the tool's columns.
Row process_line(const ImageId& image, Processes& processes, uint64_t wall_ns, std::initializer_list<Cell> own);

} // namespace gpusnoop
