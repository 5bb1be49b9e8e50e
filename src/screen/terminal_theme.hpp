// SPDX-License-Identifier: Apache-2.0
// How styles look on a terminal.
#pragma once

#include "screen/style.hpp"

#include <array>
#include <cstddef>

namespace gpusnoop {

struct Look {
    short foreground = -1; // a colour's number; -1: the terminal's own
    short background = -1;
    unsigned attributes = 0; // of ncurses, WA_...
};

using Theme = std::array<Look, static_cast<size_t>(Style::count)>;

// The first eight colours, readable on light and on dark; grey, too, where the terminal has sixteen.
Theme colours(int how_many);
Theme mono();

} // namespace gpusnoop
