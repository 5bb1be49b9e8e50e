// SPDX-License-Identifier: Apache-2.0
// Layout of a screen, computed by pure functions. They support all sizes from 1x1 up.
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
    int height = 0; // 0 if there is no room

    bool operator==(const Rect&) const = default;
};

// --- regions, from top to bottom -------------------------------------------------------------------------------------

struct Regions {
    Rect title, gpus, facts, troubles, header, rows, totals, footer; // all are as wide as the screen
};

// Assigns lines to the regions in this order of priority: one row, column headers, footer, title, sum line, troubles
// (at most three lines), then facts and GPUs (together at most a third of the screen). All other lines are for rows.
// gpu_lines, fact_lines, trouble_lines: desired heights. totals: true if there is a sum line.
Regions lay_out(Size screen, int gpu_lines, int fact_lines, int trouble_lines, bool totals);

// Number of GPUs shown side by side, in at least 38 columns each.
int gpus_per_line(int columns, int gpus);

// Places items with these widths in lines, with a gap of two columns. Positions are relative to the region. An item
// that is wider than the region is truncated and fills a line.
std::vector<Rect> flow(int columns, std::span<const int> widths);

// --- rows ------------------------------------------------------------------------------------------------------------

// Returns the index of the first visible row when `height` of `count` rows fit on the screen. It is the index closest
// to `first` that keeps the selected row visible and leaves no line empty while there are rows. selected: index of the
// selected row; negative if there is none.
int scroll(int first, int selected, int count, int height);

// --- columns ---------------------------------------------------------------------------------------------------------

struct ColumnWidth {
    int least = 1;  // minimum width; for numbers, the width of the widest value, so that no digit is cut
    int wanted = 1; // width to which a text column grows if there is room
};

struct PlacedColumn {
    int column = 0; // index of the column in `widths`
    int x = 0;
    int width = 0;
};

struct ColumnPlaces {
    std::vector<PlacedColumn> placed;
    int first = 0; // number of columns that are scrolled away to the left
    int more = 0;  // number of columns that do not fit on the right
};

// Places columns with a gap of one character. The first `staying` columns never scroll, provided that they take at most
// half of the width. first: number of columns after these to scroll away to the left; reduced if fewer already make the
// last column visible.
ColumnPlaces place_columns(int columns, std::span<const ColumnWidth> widths, int staying, int first);

// Number of columns to scroll away so that `column` is visible; `first` if it is visible already.
int scroll_to_column(int columns, std::span<const ColumnWidth> widths, int staying, int first, int column);

} // namespace gpusnoop
