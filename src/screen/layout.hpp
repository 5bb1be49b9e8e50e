// SPDX-License-Identifier: Apache-2.0
// Where things are on a screen: pure functions of plain numbers, valid for every size from 1x1 up.
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
    int height = 0; // 0: there is no room for it

    bool operator==(const Rect&) const = default;
};

// --- from top to bottom ----------------------------------------------------------------------------------------------

struct Regions {
    Rect title, gpus, facts, troubles, header, rows, totals, footer; // each as wide as the screen
};

// The rows come first: what is left once there is one of them goes to the column headers, the footer and the title, and
// at most a third of a screen to GPUs and facts.
// gpu_lines, fact_lines, trouble_lines: what they would take; of troubles three at most. totals: whether there is a sum
// line.
Regions lay_out(Size screen, int gpu_lines, int fact_lines, int trouble_lines, bool totals);

// How many GPUs are side by side, of at least 38 columns each.
int gpus_per_line(int columns, int gpus);

// Things of these widths one after the other, two columns apart, in as many lines as it takes. x and y are from the
// region's corner; what is wider than a line gets one of its own and is cut.
std::vector<Rect> flow(int columns, std::span<const int> widths);

// --- rows ------------------------------------------------------------------------------------------------------------

// The first visible of `count` rows where `height` are visible: as near to `first` as keeps the selected one in view
// and leaves no room empty that rows could fill. selected < 0: none.
int scroll(int first, int selected, int count, int height);

// --- columns ---------------------------------------------------------------------------------------------------------

struct ColumnWidth {
    int least = 1;  // of a number: as wide as its widest, so that no digit is cut
    int wanted = 1; // text grows up to it where there is room
};

struct PlacedColumn {
    int column = 0; // index into the widths
    int x = 0;
    int width = 0;
};

struct ColumnPlaces {
    std::vector<PlacedColumn> placed;
    int first = 0; // the first column that has not been scrolled away, as it could be done
    int more = 0;  // columns that do not fit to the right
};

// One column apart from each other. The first `staying` ones stay as long as they leave half the screen to the others;
// of the others, `first` have been scrolled away to the left (fewer where all that are left fit anyway).
ColumnPlaces place_columns(int columns, std::span<const ColumnWidth> widths, int staying, int first);

// The least number of columns to scroll away so that `column` is seen; `first` if it is anyway.
int scroll_to_column(int columns, std::span<const ColumnWidth> widths, int staying, int first, int column);

} // namespace gpusnoop
