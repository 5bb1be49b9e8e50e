// SPDX-License-Identifier: Apache-2.0
// Termination signals: SIGINT, SIGTERM and, unless ignored (nohup), SIGHUP. They are read from a signalfd, so that no
// work is done in signal handlers.
#pragma once

#include "base/fd.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <optional>

namespace gpusnoop {

// Thrown between the steps of long work after a signal has arrived.
struct Interrupted {};

class EndingSignals {
public:
    // Blocks the signals until they are read with arrived(). Ignores SIGPIPE and SIGXFSZ, because the error of the
    // write is more useful. Resets the inherited SIGCHLD action and signal mask, also for our children.
    EndingSignals();

    int descriptor() const { return signals_.get(); } // readable when a signal is pending
    // True once a signal has arrived. A second signal then kills this process: its sender does not want to wait for the
    // last report and the detaching of probes.
    bool arrived();
    std::chrono::nanoseconds since_first() const; // 0 before the first signal
    // The first signal, if it was sent with kill(). Signals from the terminal also reach our children.
    const std::optional<int>& sent() const { return sent_; }
    void check();         // throws Interrupted if a signal has arrived
    void unblock() const; // from now on these signals and SIGPIPE kill this process
    void restore() const; // the inherited state, for a child before exec

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 2> ignored_before_{}; // SIGPIPE, SIGXFSZ
    struct sigaction child_before_ {};
    Fd signals_;
    std::optional<std::chrono::steady_clock::time_point> first_at_;
    std::optional<int> sent_;
};

// The signals, for processes that block them because they are ended in another way.
sigset_t ending_signal_set();

// True if one of them is pending, to be read by the owner of EndingSignals.
bool ending_signal_pending();

// While it exists, the signals end the program at once with status 0: for work that cannot be interrupted and leaves
// nothing to clean up.
class ExitOnSignal {
public:
    ExitOnSignal();
    ~ExitOnSignal();
    ExitOnSignal(const ExitOnSignal&) = delete;
    ExitOnSignal& operator=(const ExitOnSignal&) = delete;

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 3> before_{};
};

// A function that every ExitOnSignal calls before it exits, to restore the terminal. Async-signal-safe; null: none.
void set_exit_on_signal_hook(void (*action)());

} // namespace gpusnoop
