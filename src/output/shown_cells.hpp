// SPDX-License-Identifier: Apache-2.0
// Computes the cells of text tables from recorded JSON rows. Values that JSON rows do not contain, such as rates and
// percentages, are computed from values that they contain.
#pragma once

#include "output/record.hpp"
#include "rows/table.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

// Properties of a table that affect its cells.
struct ShownTable {
    std::string_view tool;
    double seconds = 0;
    std::string_view names = "short"; // form of kernel names, as in --names
    bool nvml = false;                // some row has a value from NVML
    bool has_graph_kernels = false;   // kernels started by graphs have their own column
    bool threads = false;             // rows are grouped by thread
};

// The row's cell in this column; empty if it cannot be computed from the row.
Cell shown_cell(const Record& row, const Column& column, const ShownTable& table);

// False if JSON rows neither contain the column's values nor allow computing them.
bool can_be_shown(const Column& column, std::string_view tool);

// Converts a JSON value to a cell of a column with this unit.
Cell cell_of(const Record::Value& value, Unit unit);

} // namespace gpusnoop
