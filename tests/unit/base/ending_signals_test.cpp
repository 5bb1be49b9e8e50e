// SPDX-License-Identifier: Apache-2.0
#include "base/ending_signals.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// Runs a function in a child process, because the function changes signal handling. Returns the child's wait status.
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

TEST_CASE("the first signal is reported, the second one kills the process", "[util]")
{
    for (int number : {SIGINT, SIGTERM, SIGHUP}) {
        ::signal(SIGHUP, SIG_DFL); // in case the tests run under nohup
        const int asked = status_of([number] {
            EndingSignals signals;
            if (signals.arrived() || readable(signals.descriptor()))
                return 1;
            ::raise(number);
            if (!readable(signals.descriptor()) || !signals.arrived() || !signals.arrived())
                return 2;
            try {
                signals.check();
                return 3;
            } catch (const Interrupted&) {
                return signals.since_first().count() > 0 ? 42 : 4;
            }
        });
        CHECK(WEXITSTATUS(asked) == 42);
        const int again = status_of([number] {
            if (number != SIGHUP)
                ::signal(number, SIG_IGN); // as shells do for background jobs
            EndingSignals signals;
            ::raise(number);
            signals.arrived();
            ::raise(number);
            return 1;
        });
        CHECK(WIFSIGNALED(again));
        CHECK(WTERMSIG(again) == number);
    }
}

TEST_CASE("an ignored SIGHUP (nohup) stays ignored", "[util]")
{
    const int status = status_of([] {
        ::signal(SIGHUP, SIG_IGN);
        EndingSignals signals;
        const ExitOnSignal now;
        ::raise(SIGHUP);
        if (signals.arrived())
            return 1;
        ::raise(SIGTERM);
        return 2;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const int second = status_of([] {
        ::signal(SIGHUP, SIG_IGN);
        EndingSignals signals;
        ::raise(SIGTERM);
        if (!signals.arrived())
            return 1;
        ::raise(SIGHUP);
        return 42;
    });
    CHECK(WEXITSTATUS(second) == 42);
}

TEST_CASE("inherited signal settings are reset, and restored before exec", "[util]")
{
    const int status = status_of([] {
        ::signal(SIGCHLD, SIG_IGN);
        sigset_t all;
        sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        EndingSignals signals;
        const pid_t child = ::fork();
        if (child == 0)
            ::_exit(7);
        int its = 0;
        if (::waitpid(child, &its, 0) != child || WEXITSTATUS(its) != 7)
            return 1;
        sigset_t blocked;
        ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
        if (sigismember(&blocked, SIGALRM) || !sigismember(&blocked, SIGTERM))
            return 2;
        signals.restore();
        ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
        struct sigaction now {};
        ::sigaction(SIGCHLD, nullptr, &now);
        return sigismember(&blocked, SIGALRM) && now.sa_handler == SIG_IGN ? 42 : 3;
    });
    CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("a write beyond the file size limit fails, and SIGXFSZ is restored before exec", "[util]")
{
    const auto writes_too_much = [] {
        char name[] = "/tmp/gpusnoop-unit-XXXXXX";
        const int file = ::mkstemp(name);
        ::unlink(name);
        const rlimit limit{1, 1};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        return ::write(file, "ab", 2) == 1 && ::write(file, "b", 1) < 0 && errno == EFBIG ? 42 : 1;
    };
    const int fails = status_of([&] {
        const EndingSignals signals;
        return writes_too_much();
    });
    CHECK(WEXITSTATUS(fails) == 42);
    const int killed = status_of([&] {
        EndingSignals().restore();
        return writes_too_much();
    });
    CHECK(WIFSIGNALED(killed));
    CHECK(WTERMSIG(killed) == SIGXFSZ);
}

TEST_CASE("ExitOnSignal exits at once, also for a pending signal", "[util]")
{
    const int status = status_of([] {
        EndingSignals signals;
        ::raise(SIGINT);
        const ExitOnSignal now;
        return 1;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const int after = status_of([] {
        EndingSignals signals;
        {
            const ExitOnSignal now;
        }
        ::raise(SIGINT);
        return signals.arrived() ? 42 : 1;
    });
    CHECK(WEXITSTATUS(after) == 42);
}
