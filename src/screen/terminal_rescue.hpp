// SPDX-License-Identifier: Apache-2.0
// Restores the terminal if the program is killed or crashes, in which case no destructors run.
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

// While this object exists, the terminal is restored before the program ends by a signal, ExitOnSignal, std::terminate
// or exit(). Restoring writes the text `restoring` to the terminal and resets the terminal's modes. Only one object may
// exist.
class TerminalRescue {
public:
    TerminalRescue(int fd, const termios& modes, std::string_view restoring);
    ~TerminalRescue();
    TerminalRescue(const TerminalRescue&) = delete;
    TerminalRescue& operator=(const TerminalRescue&) = delete;
};

// Limits how long ncurses blocks on a terminal that accepts no data, for example after Ctrl-S. ncurses retries
// interrupted writes forever. So after half a second, its output is redirected to /dev/null until this object is
// destroyed. Only one object may exist.
class TerminalPatience {
public:
    explicit TerminalPatience(int terminal); // a descriptor, which is not owned
    ~TerminalPatience();                     // restores the descriptor
    TerminalPatience(const TerminalPatience&) = delete;
    TerminalPatience& operator=(const TerminalPatience&) = delete;

    bool ran_out() const; // true if output was discarded

private:
    int terminal_;
    Fd saved_;
    Fd null_;
    timer_t timer_{};
    bool timed_ = false;
};

// Checks and setup before ncurses starts.
inline constexpr auto no_terminal_needed = "-b prints plain tables, -j prints JSON lines; neither needs a terminal";

// Sets LC_CTYPE to the user's locale. If that is a UTF-8 locale that this machine lacks, which is common over ssh, sets
// C.UTF-8 instead.
void set_locale();

// Throws Error if stdin or stdout is not a terminal, or its type (TERM) is unknown or too limited.
void check_terminal();

// Escape sequences that restore the terminal without ncurses: attributes, keypad, cursor, alternate screen. Call after
// newterm().
std::string restoring_text();

// Appearance of a style.
struct Look {
    short foreground = -1; // number of the colour; -1: the terminal's default
    short background = -1;
    unsigned attributes = 0; // ncurses WA_...
};

using Theme = std::array<Look, static_cast<size_t>(Style::count)>;

// A theme for a terminal with `count` colours, readable on light and dark backgrounds. It uses the first eight colours,
// and grey if there are sixteen.
Theme colours(int count);
Theme mono();

} // namespace gpusnoop
