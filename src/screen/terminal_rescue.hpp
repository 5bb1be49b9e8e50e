// SPDX-License-Identifier: Apache-2.0
// Restores the terminal when the program is killed or crashes, since no destructors run then.
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

// While it exists, fatal signals, signals that end a program, ExitOnSignal, std::terminate and exit() write `restoring`
// to the terminal and set its modes before their usual effect. Only one may exist.
class TerminalRescue {
public:
    TerminalRescue(int fd, const termios& modes, std::string_view restoring);
    ~TerminalRescue();
    TerminalRescue(const TerminalRescue&) = delete;
    TerminalRescue& operator=(const TerminalRescue&) = delete;
};

// Limits the time that ncurses may block on a terminal that accepts no data (stopped by Ctrl-S, or not read). ncurses
// retries interrupted writes forever, so after half a second /dev/null replaces the terminal until this is destroyed.
// Only one may exist.
class TerminalPatience {
public:
    explicit TerminalPatience(int terminal); // descriptor; not owned
    ~TerminalPatience();                     // restores the terminal's descriptor
    TerminalPatience(const TerminalPatience&) = delete;
    TerminalPatience& operator=(const TerminalPatience&) = delete;

    bool ran_out() const; // some output was discarded

private:
    int terminal_;
    Fd saved_;
    Fd null_;
    timer_t timer_{};
    bool timed_ = false;
};

// Checks and setup before ncurses starts.
inline constexpr auto no_terminal_needed = "-b prints plain tables, -j prints JSON lines; neither needs a terminal";

// Sets LC_CTYPE to the user's locale. Over ssh this machine often lacks that locale: C.UTF-8 then replaces a UTF-8 one.
void set_locale();

// Throws Error if standard input or output is not a terminal, or its type (TERM) is unknown or too limited.
void check_terminal();

// Escape sequences that undo a screen without ncurses: attributes, keypad, cursor, alternate screen. Call after
// newterm().
std::string restoring_text();

// Appearance of a style.
struct Look {
    short foreground = -1; // colour number; -1: the terminal's default
    short background = -1;
    unsigned attributes = 0; // ncurses WA_...
};

using Theme = std::array<Look, static_cast<size_t>(Style::count)>;

// Uses the first eight colours, readable on light and dark backgrounds, and grey if the terminal has sixteen.
Theme colours(int count);
Theme mono();

} // namespace gpusnoop
