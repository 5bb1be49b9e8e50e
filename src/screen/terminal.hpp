// SPDX-License-Identifier: Apache-2.0
// Terminal on which a screen is drawn. Only terminal.cpp and terminal_rescue.cpp use ncurses.
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
    // Sets LC_CTYPE to the user's locale. Throws Error if stdin or stdout is not a terminal, or its type is unknown or
    // too limited.
    Terminal();
    ~Terminal(); // restores the terminal
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    Size size() const;
    void show(const Canvas& canvas); // writes only the lines that have changed
    void repaint();                  // makes the next show() write all lines
    void next_theme();               // switches colours on or off
    bool coloured() const;
    void set_mouse(bool on); // if on, keys() also returns clicks, and the mouse no longer selects text

    int input() const;   // descriptor, readable if keys() would return keys or closed() is true
    int signals() const; // descriptor, readable if handle_signals() must be called

    std::vector<Key> keys();               // keys typed since the last call of keys()
    void put_back(std::string_view typed); // makes keys() return these keys first
    bool closed() const;                   // true if the terminal was closed, so that no more keys will arrive
    void handle_signals(); // applies a new terminal size, stops this process at Ctrl-Z, and redraws when the process
                           // continues

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
