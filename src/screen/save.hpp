// SPDX-License-Identifier: Apache-2.0
// What is on the screen, kept in a file.
#pragma once

#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// Every row and every shown column, or the whole page of a drill-down, as it is drawn on a screen that is large enough.
std::string screen_text(const ScreenState& state, const Snapshot& snapshot);

// JSON lines: one per row, in the order of the screen, with every column.
std::string screen_json(const ScreenState& state, const Snapshot& snapshot);

// A new file that only its owner can read; JSON if its name ends in ".json". Throws Error, also where there is such a
// file already.
void save_screen(const std::string& name, const ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
