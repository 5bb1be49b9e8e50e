// SPDX-License-Identifier: Apache-2.0
// How long ncurses may write to a terminal that takes nothing: one that was stopped (Ctrl-S), or that nobody reads.
#pragma once

#include "base/fd.hpp"

#include <ctime>

namespace gpusnoop {

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
