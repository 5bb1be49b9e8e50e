// SPDX-License-Identifier: Apache-2.0
// Layout of a screen: pure functions of numbers, valid for every size from 1x1 up.
#pragma once

#include <span>
#include <vector>

namespace gpusnoop {

struct Size {
    int columns = 80;
    int lines = 24;
};

struct Rect {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0; // 0: no room

    bool operator==(const Rect&) const = default;
};

// --- from top to bottom ----------------------------------------------------------------------------------------------

struct Regions {
    Rect title, gpus, facts, troubles, header, rows, totals, footer; // each as wide as the screen
};

// Assigns lines to the regions in order of priority: one row, column headers, footer, title, sum line, troubles, facts
// and GPUs (at most a third of the screen), then more rows.
// gpu_lines, fact_lines, trouble_lines: wanted heights; troubles get at most three. totals: there is a sum line.
Regions lay_out(Size screen, int gpu_lines, int fact_lines, int trouble_lines, bool totals);

// Number of GPU bars side by side, of at least 38 columns each.
int gpus_per_line(int columns, int gpus);

// Places items of these widths in lines, two columns apart. x and y are relative to the region. An item wider than a
// line is cut, and has the line for itself.
std::vector<Rect> flow(int columns, std::span<const int> widths);

// --- rows ------------------------------------------------------------------------------------------------------------

// Index of the first visible row, if `height` of `count` rows are visible: as close to `first` as possible, so that the
// selected row is visible and no line is empty that a row could fill. selected < 0: none.
int scroll(int first, int selected, int count, int height);

// --- columns ---------------------------------------------------------------------------------------------------------

struct ColumnWidth {
    int least = 1;  // a number's column is at least as wide as its widest value, so that no digit is cut
    int wanted = 1; // a text column grows up to this width if there is room
};

struct PlacedColumn {
    int column = 0; // index into the widths
    int x = 0;
    int width = 0;
};

struct ColumnPlaces {
    std::vector<PlacedColumn> placed;
    int first = 0; // number of columns scrolled away to the left, after clamping
    int more = 0;  // columns that do not fit on the right
};

// Places columns with a gap of one. The first `staying` columns never scroll, as long as they leave half of the screen
// to the others. `first` of the others are scrolled away to the left, or fewer if the remaining ones fit anyway.
ColumnPlaces place_columns(int columns, std::span<const ColumnWidth> widths, int staying, int first);

// Number of columns to scroll away so that `column` is visible; `first` if it already is.
int scroll_to_column(int columns, std::span<const ColumnWidth> widths, int staying, int first, int column);

} // namespace gpusnoop
