// SPDX-License-Identifier: Apache-2.0
// The program given on the command line (-- PROGRAM ARGS). It is a child process that waits before its exec until the
// probes are attached, so that its first call is counted. It runs as if started without the tool: it has the user
// (unless --user is given), capabilities, limits, signal settings and descriptors with which the tool was started.
#pragma once

#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/privileges.hpp"
#include "run/mapping_gate.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Thrown if the program was not found (exit status 127, as in shells) or cannot be executed (126).
class CannotStart : public Error {
public:
    CannotStart(int status, const std::string& what, std::string hint = {})
        : Error(what, std::move(hint)), status_(status)
    {}
    int status() const { return status_; }

private:
    int status_;
};

class StartedProgram {
public:
    // Construct before the tool drops capabilities or raises limits. words: the program, which is searched in PATH, and
    // its arguments. policy: policy of the gate; if nullopt, there is no gate, and the program is not paused after its
    // exec. user: account under which the program runs, with that account's groups, HOME, SHELL, USER and LOGNAME, and
    // without capabilities unless it is root.
    StartedProgram(const std::vector<std::string>& words, const EndingSignals& signals,
                   const std::optional<MappingGate::Policy>& policy = std::nullopt,
                   const std::optional<UserAccount>& user = std::nullopt);
    ~StartedProgram(); // kills the program if it was never released
    StartedProgram(const StartedProgram&) = delete;
    StartedProgram& operator=(const StartedProgram&) = delete;

    pid_t pid() const { return pid_; }
    // Starts the program. silent: replace the program's terminal by /dev/null, because the tool uses the terminal
    // itself.
    void release(bool silent);
    bool released() const { return released_; }
    MappingGate* gate() { return gate_ ? &*gate_ : nullptr; }
    // Waits for the program to exit. Returns its exit status, or 128 plus the number of the signal that killed it, as
    // in shells. Forwards signals that were sent only to the tool; signals from the terminal reach the program anyway.
    int wait(EndingSignals& signals);

private:
    int status_of(int waited);

    std::string name_;
    std::string as_user_; // " as user NAME", or empty
    std::optional<MappingGate> gate_;
    pid_t pid_ = -1;
    Fd to_child_; // sends the order to start, and receives errno if the start fails
    bool released_ = false;
};

} // namespace gpusnoop
