// SPDX-License-Identifier: Apache-2.0
// Restores a terminal when the program dies: nobody unwinds then.
#pragma once

#include "base/fd.hpp"
#include "screen/keys.hpp"

#include <array>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <termios.h>

namespace gpusnoop {

// One at a time. Fatal signals, those that kill a program, ExitOnSignal, std::terminate and exit() write `restoring` to
// the terminal, set its modes, and then do what they would have done.
class TerminalRescue {
public:
    TerminalRescue(int fd, const termios& modes, std::string_view restoring);
    ~TerminalRescue();
    TerminalRescue(const TerminalRescue&) = delete;
    TerminalRescue& operator=(const TerminalRescue&) = delete;
};

// How long ncurses may write to a terminal that takes nothing: one that was stopped (Ctrl-S), or that nobody reads.

// ncurses goes on with a write for as long as it is merely interrupted. As long as this lives, what it writes after a
// while goes nowhere. One at a time.
class TerminalPatience {
public:
    explicit TerminalPatience(int terminal); // a descriptor, not owned
    ~TerminalPatience();                     // the terminal is back
    TerminalPatience(const TerminalPatience&) = delete;
    TerminalPatience& operator=(const TerminalPatience&) = delete;

    bool ran_out() const; // something was not written

private:
    int terminal_;
    Fd saved_;
    Fd null_;
    timer_t timer_{};
    bool timed_ = false;
};

// What is known of the terminal before it is used.
inline constexpr auto no_terminal_needed = "-b prints plain tables, -j prints JSON lines; neither needs a terminal";

// LC_CTYPE becomes the user's. A terminal often names a locale that the machine at this end of an ssh does not have:
// C.UTF-8 then stands for one in UTF-8.
void set_locale();

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
Theme colours(int count);
Theme mono();

} // namespace gpusnoop
