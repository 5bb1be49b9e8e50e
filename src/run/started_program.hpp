// SPDX-License-Identifier: Apache-2.0
// The program that the command line ends with (-- PROGRAM ARGS): a child that is held before its exec until the probes
// are in, so that its first call is seen. It is as if the tool had not been there: the identity, capabilities, limits,
// signals and descriptors are those that the tool was started with, or the identity is another user's (--user).
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

// There is no such program (127), or it may not be executed (126), as shells say it.
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
    // words: the program, looked for in PATH, and its arguments. Before anything is given up or raised. policy:
    // of its gate; without one it never waits once it has begun. user: that it runs as, with that user's groups, HOME,
    // SHELL, USER and LOGNAME, and no capabilities but root's.
    StartedProgram(const std::vector<std::string>& words, const EndingSignals& signals,
                   const std::optional<MappingGate::Policy>& policy = std::nullopt,
                   const std::optional<UserAccount>& user = std::nullopt);
    ~StartedProgram(); // one that is still held ends, without having begun
    StartedProgram(const StartedProgram&) = delete;
    StartedProgram& operator=(const StartedProgram&) = delete;

    pid_t pid() const { return pid_; }
    // Lets it begin. silent: the terminal is somebody else's, so what would be read from it or printed on it is not.
    void release(bool silent);
    bool released() const { return released_; }
    MappingGate* gate() { return gate_ ? &*gate_ : nullptr; }
    // Its exit status, as shells have it: 128 and the number of the signal that killed it. Waits for its end. A signal
    // that was sent to the tool alone is passed on; one of the terminal has reached both.
    int wait(EndingSignals& signals);

private:
    int status_of(int waited);

    std::string name_;
    std::string as_user_; // " as user NAME", or empty
    std::optional<MappingGate> gate_;
    pid_t pid_ = -1;
    Fd to_child_; // takes what it is to do, and says in return why it could not be executed
    bool released_ = false;
};

} // namespace gpusnoop
