// SPDX-License-Identifier: Apache-2.0
// How a cell is written for a person: in the text output and on the screen alike.
#pragma once

#include "base/clock.hpp"
#include "rows/table.hpp"

#include <cstddef>
#include <string>

namespace gpusnoop {

bool is_left_aligned(Unit unit);
size_t width_of(const Column& column); // least columns of text; never 0

class CellText {
public:
    // Appends the text of a cell, made safe for the terminal and cut to `width` columns; only text is cut. Returns
    // the columns appended.
    size_t append(std::string& to, Unit unit, const Cell& cell, size_t width = std::string::npos);

    void append_clock(std::string& to, uint64_t wall_ns) { time_.append_clock(to, wall_ns); }

private:
    LocalTime time_;
};

} // namespace gpusnoop
