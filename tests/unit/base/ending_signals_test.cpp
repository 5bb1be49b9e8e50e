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

// Runs a function in a child process, because the function changes signal handling. `expected`: the exit status that a
// shell would report: 128 + N after signal N.
template<class Do>
void check_status(int expected, Do what)
{
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(what());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)) == expected);
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
        check_status(42, [number] {
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
        check_status(128 + number, [number] {
            if (number != SIGHUP)
                ::signal(number, SIG_IGN); // as shells do for background jobs
            EndingSignals signals;
            ::raise(number);
            signals.arrived();
            ::raise(number);
            return 1;
        });
    }
}

TEST_CASE("an ignored SIGHUP (nohup) stays ignored", "[util]")
{
    check_status(0, [] {
        ::signal(SIGHUP, SIG_IGN);
        EndingSignals signals;
        const ExitOnSignal now;
        ::raise(SIGHUP);
        if (signals.arrived())
            return 1;
        ::raise(SIGTERM);
        return 2;
    });
    check_status(42, [] {
        ::signal(SIGHUP, SIG_IGN);
        EndingSignals signals;
        ::raise(SIGTERM);
        if (!signals.arrived())
            return 1;
        ::raise(SIGHUP);
        return 42;
    });
}

TEST_CASE("inherited signal settings are reset, and restored before exec", "[util]")
{
    check_status(42, [] {
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
    check_status(42, [&] {
        const EndingSignals signals;
        return writes_too_much();
    });
    check_status(128 + SIGXFSZ, [&] {
        EndingSignals().restore();
        return writes_too_much();
    });
}

TEST_CASE("ExitOnSignal exits at once, also for a pending signal", "[util]")
{
    check_status(0, [] {
        EndingSignals signals;
        ::raise(SIGINT);
        const ExitOnSignal now;
        return 1;
    });
    check_status(42, [] {
        EndingSignals signals;
        {
            const ExitOnSignal now;
        }
        ::raise(SIGINT);
        return signals.arrived() ? 42 : 1;
    });
}
