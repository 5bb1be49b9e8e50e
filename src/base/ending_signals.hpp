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
    // Blocks the signals until they are read with arrived(). Ignores SIGPIPE and SIGXFSZ, because the error that the
    // write returns is more useful. Resets the inherited SIGCHLD action and signal mask, also for our children.
    EndingSignals();

    int descriptor() const { return signals_.get(); } // readable when a signal is pending
    // True once a signal has arrived. From then on, a second signal kills this process, so that the user need not wait
    // for the last report and until the probes are detached.
    bool arrived();
    std::chrono::nanoseconds since_first() const; // 0 before the first signal
    // The first signal, if it was sent with kill(). Signals from the terminal also reach our children.
    const std::optional<int>& sent() const { return sent_; }
    void check();         // throws Interrupted if a signal has arrived
    void unblock() const; // from now on these signals and SIGPIPE kill this process
    void restore() const; // restores the inherited actions and mask, in a child before exec

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 2> ignored_before_{}; // SIGPIPE, SIGXFSZ
    struct sigaction child_before_ {};
    Fd signals_;
    std::optional<std::chrono::steady_clock::time_point> first_at_;
    std::optional<int> sent_;
};

// The set of these signals, for processes that block them because they are terminated in another way.
sigset_t ending_signal_set();

// True if a termination signal is pending that EndingSignals has not read.
bool ending_signal_pending();

// While an ExitOnSignal exists, termination signals end the program at once with status 0. It is used during work that
// cannot be interrupted and leaves nothing to clean up.
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

// Sets a function that ExitOnSignal calls before it exits, e.g. to restore the terminal. The function must be
// async-signal-safe; null: none.
void set_exit_on_signal_hook(void (*action)());

} // namespace gpusnoop
