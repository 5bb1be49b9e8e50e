// SPDX-License-Identifier: Apache-2.0
// Saving of a screen's contents to a file.
#pragma once

#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// Returns the whole list (all rows and all shown columns), or the whole current page, as text. The text is drawn as on
// a screen that is large enough for all of it.
std::string screen_text(const ScreenState& state, const Snapshot& snapshot);

// Returns JSON lines with all columns, one line per row, in the order on the screen.
std::string screen_json(const ScreenState& state, const Snapshot& snapshot);

// Creates a file that only its owner can read. It contains JSON if the name ends in ".json", else text. Throws Error if
// the file exists or cannot be written.
void save_screen(const std::string& name, const ScreenState& state, const Snapshot& snapshot);

} // namespace gpusnoop
