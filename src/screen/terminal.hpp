// SPDX-License-Identifier: Apache-2.0
// The terminal while a screen uses it. Only this file and terminal_rescue use ncurses.
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
    // Sets LC_CTYPE to the user's. Throws Error if standard input or output is not a terminal, or its type is unknown
    // or too limited.
    Terminal();
    ~Terminal(); // restores the terminal
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    Size size() const;
    void show(const Canvas& canvas); // writes only lines that have changed
    void repaint();                  // the next show() writes everything
    void next_theme();               // toggles colours
    bool coloured() const;
    void set_mouse(bool on); // on: clicks arrive as keys, and the terminal no longer selects text with the mouse

    int input() const;   // readable if keys() has keys, or if closed()
    int signals() const; // readable if handle_signals() should be called

    std::vector<Key> keys();               // keys typed since the last call
    void put_back(std::string_view typed); // keys() will return these first
    bool closed() const;                   // the terminal was closed, so no more keys will arrive
    void handle_signals();                 // applies a new size; stops on Ctrl-Z and redraws on fg

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
