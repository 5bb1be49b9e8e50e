// SPDX-License-Identifier: Apache-2.0
// Restores a terminal when the program dies: nobody unwinds then.
#pragma once

#include "base/fd.hpp"

#include <ctime>
#include <string_view>
#include <termios.h>

namespace gpusnoop {

// One at a time. Fatal signals, those that kill a program, EndAtOnce, std::terminate and exit() write `restoring` to
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
    Fd nowhere_;
    timer_t timer_{};
    bool timed_ = false;
};

} // namespace gpusnoop
