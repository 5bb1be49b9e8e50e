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
// While these are ignored, writes fail with EPIPE and EFBIG, respectively.
constexpr std::array ignored = {SIGPIPE, SIGXFSZ};

void (*volatile exit_hook)() = nullptr; // global, because a signal handler uses it

void exit_at_once(int)
{
    if (exit_hook)
        exit_hook();
    ::_exit(0);
}

bool is_ignored(int signal)
{
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// If the signal is ignored, restores its default action, which kills this process. Keeps an installed handler, such as
// that of the live screen, which restores the terminal.
void stop_ignoring(int signal)
{
    if (is_ignored(signal))
        ::signal(signal, SIG_DFL);
}

} // namespace

// An ignored SIGHUP is left out, because it means that the user ran nohup. SIGINT is included even if it is ignored:
// shells ignore it for every background job, so that is not the user's choice.
sigset_t ending_signal_set()
{
    sigset_t set;
    sigemptyset(&set);
    for (int signal : ending)
        if (signal != SIGHUP || !is_ignored(signal))
            sigaddset(&set, signal);
    return set;
}

bool ending_signal_pending()
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
    ::signal(SIGCHLD, SIG_DFL); // if SIGCHLD were ignored, waitpid() would not find our children
    const sigset_t set = ending_signal_set();
    ::sigprocmask(SIG_SETMASK, &set, &mask_before_);
    signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_)
        throw Error("cannot set up signal handling: " + errno_text(errno));
}

bool EndingSignals::arrived()
{
    signalfd_siginfo info{};
    if (first_at_ || ::read(signals_.get(), &info, sizeof(info)) != sizeof(info))
        return first_at_.has_value();
    first_at_ = std::chrono::steady_clock::now();
    if (info.ssi_code <= 0) // sent by a process; signals from the terminal have the code SI_KERNEL
        sent_ = static_cast<int>(info.ssi_signo);
    const sigset_t set = ending_signal_set();
    for (int signal : ending)
        if (sigismember(&set, signal) == 1)
            stop_ignoring(signal);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    return true;
}

void EndingSignals::unblock() const
{
    ::sigaction(SIGPIPE, &ignored_before_[0], nullptr);
    const sigset_t set = ending_signal_set();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void EndingSignals::restore() const
{
    for (size_t i = 0; i < ignored.size(); i++)
        ::sigaction(ignored[i], &ignored_before_[i], nullptr);
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::chrono::nanoseconds EndingSignals::since_first() const
{
    return first_at_ ? std::chrono::steady_clock::now() - *first_at_ : std::chrono::nanoseconds(0);
}

void EndingSignals::check()
{
    if (arrived())
        throw Interrupted{};
}

ExitOnSignal::ExitOnSignal()
{
    struct sigaction action {};
    action.sa_handler = exit_at_once;
    action.sa_mask = ending_signal_set();
    const sigset_t set = ending_signal_set();
    for (size_t i = 0; i < ending.size(); i++)
        ::sigaction(ending[i], sigismember(&set, ending[i]) == 1 ? &action : nullptr, &before_[i]);
    ::sigprocmask(SIG_UNBLOCK, &set, &mask_before_);
}

ExitOnSignal::~ExitOnSignal()
{
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    for (size_t i = 0; i < ending.size(); i++)
        ::sigaction(ending[i], &before_[i], nullptr);
}

void set_exit_on_signal_hook(void (*action)())
{
    exit_hook = action;
}

} // namespace gpusnoop
