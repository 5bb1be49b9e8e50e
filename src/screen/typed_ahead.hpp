// SPDX-License-Identifier: Apache-2.0
// Keys that are typed while this process cannot read them: the kernel's verifier has it for up to a second.
#pragma once

#include "reader/helper.hpp"

#include <string>
#include <string_view>

namespace gpusnoop {

// No Reader: there is no question, since the helper acts by itself while this process is in a system call, and none
// that could replace it. A helper reads the terminal, keeps what is typed, and sends SIGINT for a key that quits. A
// process, since the key is to be taken within a system call; not a tty's VINTR, since that signals whoever started
// this process, too.
class TypedAhead {
public:
    static constexpr size_t most = 100; // bytes; the terminal keeps the rest. ncurses takes 137 back (6.4)

    explicit TypedAhead(int terminal);
    std::string end(); // the terminal is this process's again; what was typed until then

private:
    Helper helper_;
};

// What was typed at once ends a screen that shows its list: a q (or F10) before any key that leads elsewhere.
bool quits(std::string_view typed);

} // namespace gpusnoop
