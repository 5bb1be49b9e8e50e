// SPDX-License-Identifier: Apache-2.0
// What is known of the terminal before it is used.
#pragma once

#include "screen/keys.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace gpusnoop {

inline constexpr auto no_terminal_needed = "-b prints plain tables, -j prints JSON lines; neither needs a terminal";

// LC_CTYPE becomes the user's. A terminal often names a locale that the machine at this end of an ssh does not have:
// C.UTF-8 then stands for one in UTF-8.
void take_locale();

// Throws Error where standard input or output is no terminal, or its type (TERM) is unknown or can do too little.
void check_terminal();

// What undoes a screen, for one who cannot ask ncurses: attributes, keypad, cursor, alternate screen. After newterm().
std::string restoring_text();

// How styles look on a terminal.
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
