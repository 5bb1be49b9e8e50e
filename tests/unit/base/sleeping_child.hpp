// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/base/pipe.hpp"

#include <csignal>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

namespace gpusnoop {

// A child process that sleeps until it is killed, at the latest by the destructor.
class SleepingChild {
public:
    // `prepare` runs in the child first, and returns whether it succeeded. It may call exec().
    template<class Prepare>
    explicit SleepingChild(Prepare prepare)
    {
        Ends pipe = pipe_ends();
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const bool succeeded = prepare();
            if (write(pipe.writing.get(), &succeeded, 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        REQUIRE(pid_ > 0);
        pipe.writing = {};
        ready_ = true; // exec() closes the pipe
        REQUIRE(read(pipe.reading.get(), &ready_, 1) >= 0);
    }
    SleepingChild() : SleepingChild([] { return true; }) {}
    SleepingChild(const SleepingChild&) = delete;
    SleepingChild& operator=(const SleepingChild&) = delete;
    ~SleepingChild() { end(); }

    pid_t pid() const { return pid_; } // also after its end
    bool ready() const { return ready_; }
    // The process becomes a zombie.
    void kill() const
    {
        siginfo_t ended{};
        ::kill(pid_, SIGKILL);
        REQUIRE(waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) == 0);
    }
    // The process no longer exists.
    void end()
    {
        if (!ended_) {
            ::kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        ended_ = true;
    }

private:
    pid_t pid_ = -1;
    bool ready_ = false, ended_ = false;
};

} // namespace gpusnoop
