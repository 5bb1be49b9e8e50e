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

// Thrown between the steps of a long task if a termination signal has arrived.
struct Interrupted {};

class EndingSignals {
public:
    // Blocks the signals, so that arrived() can read them. Ignores SIGPIPE and SIGXFSZ, so that writes return an error
    // instead of killing the process. Resets the inherited action of SIGCHLD and the signal mask. Children inherit all
    // these settings unless they call restore().
    EndingSignals();

    int descriptor() const { return signals_.get(); } // readable when a signal is pending
    // Returns true once a signal has arrived. After the first signal, another one kills this process, so that the user
    // need not wait for the last report and for the probes to be detached.
    bool arrived();
    std::chrono::nanoseconds since_first() const; // 0 before the first signal
    // The first signal, if it was sent with kill(). Unlike a signal from the terminal, it has not reached our
    // children.
    const std::optional<int>& sent() const { return sent_; }
    void check();         // throws Interrupted if a signal has arrived
    void unblock() const; // lets termination signals and SIGPIPE kill this process
    void restore() const; // for a child before exec: restores the inherited actions and mask

private:
    sigset_t mask_before_{};
    std::array<struct sigaction, 2> ignored_before_{}; // previous actions of SIGPIPE and SIGXFSZ
    struct sigaction child_before_ {};
    Fd signals_;
    std::optional<std::chrono::steady_clock::time_point> first_at_;
    std::optional<int> sent_;
};

// Returns the termination signals. Helper processes block these signals, and are killed by the kernel when the tool
// exits (PR_SET_PDEATHSIG).
sigset_t ending_signal_set();

// True if a termination signal is pending that EndingSignals has not read.
bool ending_signal_pending();

// While an ExitOnSignal exists, termination signals end the program at once with status 0. For work that does not check
// for signals and needs no cleanup.
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

// Sets a function that ExitOnSignal calls before it exits, e.g. to restore the terminal; null: none. The function must
// be async-signal-safe.
void set_exit_on_signal_hook(void (*action)());

} // namespace gpusnoop
