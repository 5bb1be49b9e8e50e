// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and, unless nohup has it ignored, SIGHUP: they end a run, wherever it is. No work is done in signal
// handlers.
#pragma once

#include "base/fd.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <optional>

namespace gpusnoop {

// Thrown between the steps of what takes long, where a signal has come.
struct Interrupted {};

class EndingSignals {
public:
    // From here on they wait for somebody to ask. SIGPIPE and SIGXFSZ are ignored: the error of the write says more.
    // What was inherited of SIGCHLD and of blocked signals ends here, for our children, too.
    EndingSignals();

    int descriptor() const { return signals_.get(); } // readable: came() has something to do
    // One has come, now or before. From the first on, another one kills as if nobody had asked: whoever sends it does
    // not want to wait for what is left, printing and detaching.
    bool came();
    std::chrono::nanoseconds ago() const; // since the first was seen
    // The first one, where a process sent it to this one: the terminal's reach all that belong to it.
    const std::optional<int>& sent() const { return sent_; }
    void check();            // throws Interrupted
    void kill_again() const; // from here on nobody asks, and they kill, as does SIGPIPE
    void as_before() const;  // for a child that is to be another program: all of this as it was inherited

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 2> ignored_before_{}; // SIGPIPE, SIGXFSZ
    struct sigaction child_before_ {};
    Fd signals_;
    std::optional<std::chrono::steady_clock::time_point> came_;
    std::optional<int> sent_;
};

// What they are, to be blocked by who is ended in another way.
sigset_t ending_set();

// One waits to be asked for, by whoever has the object.
bool ending_signal_waits();

// As long as it lives they end the program at once, with 0: for what cannot be broken off and leaves nothing behind.
class EndAtOnce {
public:
    EndAtOnce();
    ~EndAtOnce();
    EndAtOnce(const EndAtOnce&) = delete;
    EndAtOnce& operator=(const EndAtOnce&) = delete;

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 3> before_{};
};

// What EndAtOnce does first, whoever has it: puts the terminal right. Async-signal-safe; null: nothing.
void first_when_ending_at_once(void (*action)());

} // namespace gpusnoop
