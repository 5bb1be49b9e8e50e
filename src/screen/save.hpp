// SPDX-License-Identifier: Apache-2.0
// Saves the contents of a screen to a file.
#pragma once

#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// All rows and shown columns of the list, or the whole current page, as drawn on a screen that is large enough.
std::string screen_text(const ScreenState& state, const Snapshot& snapshot);

// JSON lines: one per row, in the order on the screen, with all columns.
std::string screen_json(const ScreenState& state, const Snapshot& snapshot);

// Creates a file that only its owner can read; JSON if the name ends in ".json". Throws Error, also if the file exists.
void save_screen(const std::string& name, const ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
