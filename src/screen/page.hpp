// SPDX-License-Identifier: Apache-2.0
// Everything on a screen that is not the list: the drill-down, the help, the messages and what is chosen from, as lines
// that are scrolled through.
#pragma once

#include "screen/keys.hpp"
#include "screen/screen_state.hpp"

#include <string>
#include <vector>

namespace gpusnoop {

struct PageLine {
    std::string text; // as it came from where it came; made harmless when it is drawn
    Style style = Style::plain;
};

struct Page {
    std::string title;
    std::vector<PageLine> above; // lines that are not scrolled: the plot of a drill-down
    std::vector<PageLine> lines;
};

// Of the view that is not the list. size: of the screen, to which a plot is fitted.
Page page_of(const ScreenState& state, const Snapshot& snapshot, Size size);

// Lines that are scrolled through on a screen of this size: those below the title and what stays, above the footer.
int page_height(const Page& page, Size size);

// --- what is chosen from ---------------------------------------------------------------------------------------------

struct Choice {
    std::string key;
    std::string label;
    std::string about;
    bool chosen = false; // now
};

bool is_chooser(View view);
std::vector<Choice> choices(const ScreenState& state, const Snapshot& snapshot);

// --- the drill-down --------------------------------------------------------------------------------------------------

Page detail_page(const ScreenState& state, const Snapshot& snapshot, Size size);

// Columns of numbers, of which there is a history.
std::vector<size_t> plotted_columns(const Snapshot& snapshot);

} // namespace gpusnoop
