// SPDX-License-Identifier: Apache-2.0
// View of the list: the visible rows and columns, and their positions.
#pragma once

#include "rows/table.hpp"
#include "screen/screen_state.hpp"

namespace gpusnoop {

struct ListLine {
    const TopRow* row = nullptr; // null if the line is the heading of a branch
    std::string_view branch;     // branch of the tree to which the line belongs
    Row sum{};                   // for a heading: sums of the branch's rows
    size_t rows = 0;             // for a heading: number of the branch's rows
    bool folded = false;         // for a heading: the branch's rows are hidden
    bool last = false;           // for a row: it is the last one of its branch

    std::string id() const; // assigned to ScreenState::selected when the line is selected
};

struct ListView {
    Regions regions;
    int gpus_side_by_side = 1;
    std::vector<Rect> facts; // position of each of Snapshot::facts, relative to regions.facts
    std::vector<ListLine> lines;
    int rows = 0;                // number of rows, including hidden rows in folded branches
    int selected = -1;           // index of the selected line; -1: none
    int first = 0;               // index of the first visible line
    std::vector<size_t> columns; // indices of the shown columns in Snapshot::columns
    std::vector<ColumnWidth> widths;
    int staying = 0;     // number of columns that never scroll
    int indent = 0;      // width of the tree's connecting lines, in columns
    ColumnPlaces places; // positions of the visible columns
};

// Computes the view of the list for a screen of this size.
ListView view_list(const ScreenState& state, const Snapshot& snapshot, Size size);

std::vector<ListLine> list_lines(const ScreenState& state, const Snapshot& snapshot);

std::vector<size_t> shown_columns(const ScreenState& state, const Snapshot& snapshot);

// The header of a column, with a mark if its values are from the GPU's own counters.
std::string header_of(const TopColumn& column);

// Name of a row, such as "1234 python3": its cells in the columns that never scroll.
std::string name_of(const ScreenState& state, const Snapshot& snapshot, const TopRow& row);

// Widens ScreenState::widths to fit the numbers that are visible now.
void widen(ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
