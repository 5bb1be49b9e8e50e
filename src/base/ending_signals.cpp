// SPDX-License-Identifier: Apache-2.0
#include "base/ending_signals.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr std::array ending = {SIGINT, SIGTERM, SIGHUP};
constexpr std::array ignored = {SIGPIPE, SIGXFSZ}; // of writes, which return EPIPE and EFBIG instead

// A signal handler gets at nothing but statics.
void (*volatile first)() = nullptr;

void end_at_once(int)
{
    if (first)
        first();
    ::_exit(0);
}

bool is_ignored(int signal)
{
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// A signal that is ignored kills from now on; a handler that puts something right before it does (the screen's) stays.
void kill_by(int signal)
{
    if (is_ignored(signal))
        ::signal(signal, SIG_DFL);
}

} // namespace

sigset_t ending_set()
{
    sigset_t set;
    sigemptyset(&set);
    for (int signal : ending)
        if (signal != SIGHUP || !is_ignored(signal)) // as nohup wants it; SIGINT is also ignored behind a shell's &
            sigaddset(&set, signal);
    return set;
}

bool ending_signal_waits()
{
    sigset_t waiting;
    return ::sigpending(&waiting) == 0 &&
           std::ranges::any_of(ending, [&](int signal) { return sigismember(&waiting, signal) == 1; });
}

EndingSignals::EndingSignals()
{
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (size_t i = 0; i < ignored.size(); i++)
        ::sigaction(ignored[i], &ignore, &ignored_before_[i]);
    ::sigaction(SIGCHLD, nullptr, &child_before_);
    ::signal(SIGCHLD, SIG_DFL); // while it is ignored, the kernel reaps our children and waitpid() does not find them
    const sigset_t set = ending_set();
    ::sigprocmask(SIG_SETMASK, &set, &mask_before_);
    signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_)
        throw Error("signals cannot be waited for: " + errno_text(errno));
}

bool EndingSignals::came()
{
    signalfd_siginfo info{};
    if (came_ || ::read(signals_.get(), &info, sizeof(info)) != sizeof(info))
        return came_.has_value();
    came_ = std::chrono::steady_clock::now();
    if (info.ssi_code <= 0) // not SI_KERNEL
        sent_ = static_cast<int>(info.ssi_signo);
    const sigset_t set = ending_set();
    for (int signal : ending)
        if (sigismember(&set, signal) == 1)
            kill_by(signal);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    return true;
}

void EndingSignals::kill_again() const
{
    ::sigaction(SIGPIPE, &ignored_before_[0], nullptr);
    const sigset_t set = ending_set();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void EndingSignals::as_before() const
{
    for (size_t i = 0; i < ignored.size(); i++)
        ::sigaction(ignored[i], &ignored_before_[i], nullptr);
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::chrono::nanoseconds EndingSignals::ago() const
{
    return came_ ? std::chrono::steady_clock::now() - *came_ : std::chrono::nanoseconds(0);
}

void EndingSignals::check()
{
    if (came())
        throw Interrupted{};
}

EndAtOnce::EndAtOnce()
{
    struct sigaction action {};
    action.sa_handler = end_at_once;
    action.sa_mask = ending_set();
    const sigset_t set = ending_set();
    for (size_t i = 0; i < ending.size(); i++)
        ::sigaction(ending[i], sigismember(&set, ending[i]) == 1 ? &action : nullptr, &before_[i]);
    ::sigprocmask(SIG_UNBLOCK, &set, &mask_before_);
}

EndAtOnce::~EndAtOnce()
{
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    for (size_t i = 0; i < ending.size(); i++)
        ::sigaction(ending[i], &before_[i], nullptr);
}

void first_when_ending_at_once(void (*action)())
{
    first = action;
}

} // namespace gpusnoop
