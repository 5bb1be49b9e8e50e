// SPDX-License-Identifier: Apache-2.0
#include "screen/terminal_patience.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr itimerspec half_a_second{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 500'000'000}};

// A signal handler gets at nothing but statics.
struct Replaced {
    volatile sig_atomic_t terminal = -1, nowhere = -1, ran_out = 0;
};
Replaced replaced;

// Async-signal-safe. The write that it has interrupted is tried again, with what has taken the terminal's place.
void replace(int)
{
    const int error = errno;
    ::dup2(replaced.nowhere, replaced.terminal);
    replaced.ran_out = 1;
    errno = error;
}

} // namespace

TerminalPatience::TerminalPatience(int terminal)
    : terminal_(terminal), saved_(::fcntl(terminal, F_DUPFD_CLOEXEC, 3)),
      nowhere_(::open("/dev/null", O_RDWR | O_CLOEXEC))
{
    replaced.ran_out = 0;
    if (!saved_ || !nowhere_)
        return;
    replaced.terminal = terminal;
    replaced.nowhere = nowhere_.get();
    pollfd room{terminal, POLLOUT, 0};
    if (::poll(&room, 1, 0) == 0) {
        replace(0);
        return;
    }
    struct sigaction action {};
    action.sa_handler = replace;
    ::sigaction(SIGALRM, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID; // other threads are a library's
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = ::gettid();
    timed_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (timed_)
        ::timer_settime(timer_, 0, &half_a_second, nullptr);
}

TerminalPatience::~TerminalPatience()
{
    if (timed_)
        ::timer_delete(timer_);
    ::signal(SIGALRM, SIG_IGN); // one that is on its way
    if (replaced.ran_out)
        ::dup2(saved_.get(), terminal_);
}

bool TerminalPatience::ran_out() const
{
    return replaced.ran_out;
}

} // namespace gpusnoop
