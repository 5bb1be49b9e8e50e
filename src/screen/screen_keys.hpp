// SPDX-License-Identifier: Apache-2.0
// Functions that implement press() of screen_state.hpp.
#pragma once

#include "screen/screen_state.hpp"

#include <optional>
#include <string_view>

namespace gpusnoop {

// Number of lines by which a key moves the selection or scrolls the page; nullopt for other keys. For Home and End, the
// number is larger than any list. page: number of lines by which Page Up and Page Down move.
std::optional<int> lines_moved(Key key, int page);

std::vector<Action> press_in_prompt(ScreenState& state, const Snapshot& snapshot, Key key);
std::vector<Action> press_in_page(ScreenState& state, const Snapshot& snapshot, Key key);

// Asks the user to confirm a signal to the process of the selected or open row.
void ask_for_signal(ScreenState& state, const Snapshot& snapshot);

std::vector<Action> press_mouse(ScreenState& state, const Snapshot& snapshot, const Click& click);

// Adds a message about an unknown key. Reports only one of several keys that arrive together, because they may be
// pasted text.
void report_unknown_key(ScreenState& state, Key key);

void open_prompt(ScreenState& state, const Snapshot& snapshot, Prompt prompt);
void open_page(ScreenState& state, View view);
void open_chooser(ScreenState& state, const Snapshot& snapshot, View view);

void sort_by(ScreenState& state, const Snapshot& snapshot, std::string_view key);
std::vector<Action> choose_by(ScreenState& state, const Snapshot& snapshot, const std::string& by);
std::vector<Action> step_interval(ScreenState& state, int direction);

// Selects the next row that contains the search text. here: if true, the search starts with the selected row itself.
void search_row(ScreenState& state, const Snapshot& snapshot, int direction, bool here);

// Plots the column that is `direction` columns to the right of the plotted one. 0 means the sort column or, if the sort
// column contains text, the secondary sort column.
void plot_beside(ScreenState& state, const Snapshot& snapshot, int direction);

} // namespace gpusnoop
