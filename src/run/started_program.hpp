// SPDX-License-Identifier: Apache-2.0
// The program given on the command line (-- PROGRAM ARGS): a child that is held before its exec until the probes are
// attached, so that its first call is counted. It runs as if started without the tool: with the identity (or that of
// --user), capabilities, limits, signals and descriptors that the tool was started with.
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

// The program was not found (status 127, as in shells), or may not be executed (126).
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
    // Construct before the tool drops capabilities or raises limits. words: the program, searched in PATH, and its
    // arguments. policy: of the gate; nullopt: no gate, so the program is not held after its exec. user: account to run
    // as, with its groups, HOME, SHELL, USER and LOGNAME, and without capabilities unless it is root.
    StartedProgram(const std::vector<std::string>& words, const EndingSignals& signals,
                   const std::optional<MappingGate::Policy>& policy = std::nullopt,
                   const std::optional<UserAccount>& user = std::nullopt);
    ~StartedProgram(); // ends a program that was never released
    StartedProgram(const StartedProgram&) = delete;
    StartedProgram& operator=(const StartedProgram&) = delete;

    pid_t pid() const { return pid_; }
    // Starts the program. silent: the tool uses the terminal, so replace it by /dev/null in the program.
    void release(bool silent);
    bool released() const { return released_; }
    MappingGate* gate() { return gate_ ? &*gate_ : nullptr; }
    // Waits for the program to exit. Returns its exit status, or 128 + the number of the signal that killed it, as in
    // shells. Forwards a signal that was sent to the tool alone; a signal from the terminal reaches both anyway.
    int wait(EndingSignals& signals);

private:
    int status_of(int waited);

    std::string name_;
    std::string as_user_; // " as user NAME", or empty
    std::optional<MappingGate> gate_;
    pid_t pid_ = -1;
    Fd to_child_; // sends how to start; receives the errno of a failed start
    bool released_ = false;
};

} // namespace gpusnoop
