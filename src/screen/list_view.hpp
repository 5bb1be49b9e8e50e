// SPDX-License-Identifier: Apache-2.0
// The list of a screen, worked out: which rows and columns are seen where.
#pragma once

#include "rows/table.hpp"
#include "screen/screen_state.hpp"

namespace gpusnoop {

struct ListLine {
    const TopRow* row = nullptr; // none: the heading of a branch
    std::string_view branch;     // in the tree
    Row sum{};                   // of a heading: that of its rows
    size_t rows = 0;             // below a heading
    bool folded = false;         // a heading: they are not shown
    bool last = false;           // a row: of its branch

    std::string id() const; // what it is selected by
};

struct ListView {
    Regions regions;
    int gpus_side_by_side = 1;
    std::vector<Rect> facts; // from the corner of their region
    std::vector<ListLine> lines;
    int rows = 0;                // lines that are none of headings
    int selected = -1;           // among the lines
    int first = 0;               // the first line that is seen
    std::vector<size_t> columns; // shown ones, of the snapshot's
    std::vector<ColumnWidth> widths;
    int staying = 0;
    int indent = 0;      // of the columns: room for the lines of a tree
    ColumnPlaces places; // of the shown ones
};

// As it fits a screen of this size.
ListView view_list(const ScreenState& state, const Snapshot& snapshot, Size size);

std::vector<ListLine> list_lines(const ScreenState& state, const Snapshot& snapshot);

std::vector<size_t> shown_columns(const ScreenState& state, const Snapshot& snapshot);

// The header of a column, marked where its figures are the GPU's own.
std::string header_of(const TopColumn& column);

// "1234 python3": what the first columns, those that are never scrolled away, say of a row.
std::string name_of(const ScreenState& state, const Snapshot& snapshot, const TopRow& row);

// Remembers how wide the numbers are that are seen now.
void widen(ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
