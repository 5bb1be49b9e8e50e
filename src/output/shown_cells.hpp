// SPDX-License-Identifier: Apache-2.0
// Cells of text tables, computed from recorded JSON rows. JSON rows lack some values, such as rates and percentages,
// which are computed from other values of the row.
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
    bool nvml = false;                // at least one row has a value from NVML
    bool has_graph_kernels = false;   // the table has a column for kernels started by graphs
    bool threads = false;             // rows are grouped by thread
};

// The row's cell in this column; empty if it cannot be computed from the row.
Cell shown_cell(const Record& row, const Column& column, const ShownTable& table);

// True if JSON rows contain the column's values, or values from which these can be computed.
bool can_be_shown(const Column& column, std::string_view tool);

// Converts a JSON value to a cell of a column with this unit.
Cell cell_of(const Record::Value& value, Unit unit);

} // namespace gpusnoop
