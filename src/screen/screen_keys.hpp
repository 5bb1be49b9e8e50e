// SPDX-License-Identifier: Apache-2.0
// The parts of press(), which is in screen_state.hpp.
#pragma once

#include "screen/screen_state.hpp"

#include <optional>
#include <string_view>

namespace gpusnoop {

// By how many lines a key moves the selection or a page, those of a screen being `page`; more than there are for the
// first and the last line.
std::optional<int> lines_moved(Key key, int page);

std::vector<Action> press_in_prompt(ScreenState& state, const Snapshot& snapshot, Key key);
std::vector<Action> press_in_page(ScreenState& state, const Snapshot& snapshot, Key key);

// Asks whether the process of the row that is selected, or open, is to get a signal.
void ask_for_signal(ScreenState& state, const Snapshot& snapshot);

std::vector<Action> press_mouse(ScreenState& state, const Snapshot& snapshot, const Click& click);

// Says so, once for all that was typed at once: it may be a text that was pasted.
void report_unknown_key(ScreenState& state, Key key);

void open_prompt(ScreenState& state, const Snapshot& snapshot, Prompt prompt);
void open_page(ScreenState& state, View view);
void open_chooser(ScreenState& state, const Snapshot& snapshot, View view);

void sort_by(ScreenState& state, const Snapshot& snapshot, std::string_view key);
std::vector<Action> choose_by(ScreenState& state, const Snapshot& snapshot, const std::string& by);
std::vector<Action> step_interval(ScreenState& state, int direction);

// Selects the next row that has the text searched for; `here`: the selected one will do, too.
void search_row(ScreenState& state, const Snapshot& snapshot, int direction, bool here);

// The history of the column so many further on. 0: of the one that rows are sorted by, if it has any, or then by.
void plot_beside(ScreenState& state, const Snapshot& snapshot, int direction);

} // namespace gpusnoop
