// SPDX-License-Identifier: Apache-2.0
// Pages of a screen other than the list, as scrollable lines: the open row, help, messages, troubles and choosers.
#pragma once

#include "screen/keys.hpp"
#include "screen/screen_state.hpp"

#include <string>
#include <vector>

namespace gpusnoop {

struct PageLine {
    std::string text; // may contain control characters, which the canvas replaces
    Style style = Style::plain;
};

struct Page {
    std::string title;
    std::vector<PageLine> above; // lines that do not scroll, such as the plot of an open row
    std::vector<PageLine> lines;
};

// The page of the current view. size: size of the screen, which determines the size of plots.
Page page_of(const ScreenState& state, const Snapshot& snapshot, Size size);

// Number of scrollable lines that are visible on a screen of this size.
int page_height(const Page& page, Size size);

// --- choosers --------------------------------------------------------------------------------------------------------

struct Choice {
    std::string key;
    std::string label;
    std::string about;
    bool chosen = false; // currently in effect
};

bool is_chooser(View view);
std::vector<Choice> choices(const ScreenState& state, const Snapshot& snapshot);

// --- open row --------------------------------------------------------------------------------------------------------

Page detail_page(const ScreenState& state, const Snapshot& snapshot, Size size);

// Indices of columns that can be plotted, because they contain numbers.
std::vector<size_t> plotted_columns(const Snapshot& snapshot);

} // namespace gpusnoop
