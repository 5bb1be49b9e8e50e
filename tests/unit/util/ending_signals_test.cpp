// SPDX-License-Identifier: Apache-2.0
#include "util/ending_signals.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// The status of a child that does this: it changes what signals do to it.
template<class Do>
int status_of(Do what)
{
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(what());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

bool readable(int fd)
{
    pollfd ready{fd, POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
}

} // namespace

TEST_CASE("a signal waits to be asked for, and the second one kills", "[util]")
{
    for (int number : {SIGINT, SIGTERM, SIGHUP}) {
        const int asked = status_of([number] {
            EndingSignals signals;
            if (signals.came() || readable(signals.descriptor()))
                return 1;
            ::raise(number);
            if (!readable(signals.descriptor()) || !signals.came() || !signals.came())
                return 2;
            try {
                signals.check();
                return 3;
            } catch (const Interrupted&) {
                return signals.ago().count() > 0 ? 42 : 4;
            }
        });
        CHECK(WEXITSTATUS(asked) == 42);
        const int again = status_of([number] {
            ::signal(number, SIG_IGN); // as a shell does for what it starts in the background
            EndingSignals signals;
            ::raise(number);
            signals.came();
            ::raise(number);
            return 1;
        });
        CHECK(WIFSIGNALED(again));
        CHECK(WTERMSIG(again) == number);
    }
}

TEST_CASE("what leaves nothing behind is ended at once, by a signal that has come before, too", "[util]")
{
    const int status = status_of([] {
        EndingSignals signals;
        ::raise(SIGINT);
        const EndAtOnce now;
        return 1;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const int after = status_of([] {
        EndingSignals signals;
        {
            const EndAtOnce now;
        }
        ::raise(SIGINT);
        return signals.came() ? 42 : 1;
    });
    CHECK(WEXITSTATUS(after) == 42);
}
