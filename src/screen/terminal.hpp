// SPDX-License-Identifier: Apache-2.0
// The terminal, as long as it belongs to the screen. The only part that knows ncurses.
#pragma once

#include "base/fd.hpp"
#include "screen/canvas.hpp"
#include "screen/keys.hpp"
#include "screen/terminal_rescue.hpp"

#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <termios.h>
#include <vector>

namespace gpusnoop {

class Terminal {
public:
    // Sets LC_CTYPE to the user's. Throws Error where standard input or output is no terminal, or one of a type that is
    // unknown or can do too little.
    Terminal();
    ~Terminal(); // leaves it as it was
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    Size size() const;
    void show(const Canvas& canvas); // writes what is not there yet; nothing where all of it is
    void repaint();                  // trusts nothing that is there
    void next_theme();               // colours or none
    bool coloured() const;
    void set_mouse(bool take); // whose clicks are keys then; the terminal selects no text with it

    int input() const;   // readable: keys() has some, or closed()
    int signals() const; // readable: handle_signals() has something to do

    std::vector<Key> keys();               // all that have been typed
    void put_back(std::string_view typed); // keys() has them first
    bool closed() const;                   // nothing will ever be typed again: it was closed
    void handle_signals();                 // follows a new size; stops and comes back with Ctrl-Z and fg

private:
    struct Curses;

    void follow_size();
    void stop();

    sigset_t signals_before_{};
    termios modes_before_{};
    Fd signals_;
    std::unique_ptr<Curses> curses_;
    std::optional<TerminalRescue> rescue_;
    std::optional<Canvas> shown_;
};

} // namespace gpusnoop
