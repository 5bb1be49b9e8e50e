// SPDX-License-Identifier: Apache-2.0
// What a table shows in a column, of what a line of JSON has: where people read something else than programs, it is
// made of the same figures again.
#pragma once

#include "output/record.hpp"
#include "rows/table.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

// What rows of one table have in common.
struct ShownTable {
    std::string_view tool;
    double seconds = 0;
    std::string_view names = "short"; // how kernels are named
    bool nvml = false;                // some row has a figure of NVML
    bool has_graph_kernels = false;   // in a column of their own
    bool threads = false;             // rows are by thread
};

// Empty where the line does not tell.
Cell shown_cell(const Record& row, const Column& column, const ShownTable& table);

// False: such a column is for people only, and what it shows is not in the line.
bool can_be_shown(const Column& column, std::string_view tool);

// A value of JSON as a cell of a column of this unit.
Cell cell_of(const Record::Value& value, Unit unit);

} // namespace gpusnoop
