// SPDX-License-Identifier: Apache-2.0
// Restores a terminal when the program dies: nobody unwinds then.
#pragma once

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

} // namespace gpusnoop
