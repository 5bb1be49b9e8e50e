// SPDX-License-Identifier: Apache-2.0
// Computed view of the list: which rows and columns are visible, and where.
#pragma once

#include "rows/table.hpp"
#include "screen/screen_state.hpp"

namespace gpusnoop {

struct ListLine {
    const TopRow* row = nullptr; // null: the line is the heading of a branch
    std::string_view branch;     // of the tree
    Row sum{};                   // heading: sums of its rows
    size_t rows = 0;             // heading: number of its rows
    bool folded = false;         // heading: its rows are hidden
    bool last = false;           // row: the last one of its branch

    std::string id() const; // identifies the line in ScreenState::selected
};

struct ListView {
    Regions regions;
    int gpus_side_by_side = 1;
    std::vector<Rect> facts; // relative to their region
    std::vector<ListLine> lines;
    int rows = 0;                // number of rows, including those of folded branches
    int selected = -1;           // index of a line
    int first = 0;               // index of the first visible line
    std::vector<size_t> columns; // shown columns, as indices into the snapshot's
    std::vector<ColumnWidth> widths;
    int staying = 0;     // number of columns that never scroll
    int indent = 0;      // columns for the lines of the tree
    ColumnPlaces places; // of the shown columns
};

// Computes the view for a screen of this size.
ListView view_list(const ScreenState& state, const Snapshot& snapshot, Size size);

std::vector<ListLine> list_lines(const ScreenState& state, const Snapshot& snapshot);

std::vector<size_t> shown_columns(const ScreenState& state, const Snapshot& snapshot);

// The header of a column, with a mark if its figures are from the GPU's own counters.
std::string header_of(const TopColumn& column);

// "1234 python3": the row's cells in the columns that never scroll.
std::string name_of(const ScreenState& state, const Snapshot& snapshot, const TopRow& row);

// Widens columns to the numbers that are visible now, so that they never shrink.
void widen(ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
