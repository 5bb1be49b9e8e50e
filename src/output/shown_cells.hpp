// SPDX-License-Identifier: Apache-2.0
// Cells of text tables from recorded JSON rows. Columns that JSON does not have, such as rates and percentages, are
// computed from the figures that it has.
#pragma once

#include "output/record.hpp"
#include "rows/table.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

// Properties of a table that its cells depend on.
struct ShownTable {
    std::string_view tool;
    double seconds = 0;
    std::string_view names = "short"; // style of kernel names
    bool nvml = false;                // some row has a figure from NVML
    bool has_graph_kernels = false;   // kernels of graphs have their own column
    bool threads = false;             // rows are grouped by thread
};

// Empty if the row has no such value.
Cell shown_cell(const Record& row, const Column& column, const ShownTable& table);

// False if the column is for text only and cannot be computed from JSON.
bool can_be_shown(const Column& column, std::string_view tool);

// Converts a JSON value to a cell of a column with this unit.
Cell cell_of(const Record::Value& value, Unit unit);

} // namespace gpusnoop
