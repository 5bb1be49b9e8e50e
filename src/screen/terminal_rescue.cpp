// SPDX-License-Identifier: Apache-2.0
#include "screen/terminal_rescue.hpp"

#include "base/ending_signals.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace gpusnoop {

namespace {

constexpr std::array signals = {SIGSEGV, SIGABRT, SIGBUS,  SIGFPE, SIGILL,  SIGSYS,
                                SIGTRAP, SIGQUIT, SIGXCPU, SIGINT, SIGTERM, SIGHUP};

// Static, as a signal handler has no other access to data.
struct Rescue {
    int fd = -1; // the terminal to restore; -1 if there is none
    termios modes{};
    std::array<char, 256> restoring{};
    size_t length = 0;
    std::array<struct sigaction, signals.size()> before{};
    std::terminate_handler terminate = nullptr;
    stack_t stack_before{};
    std::array<char, 32 << 10> stack{}; // separate stack for the handler, because the signal may be caused by a stack
                                        // overflow
};

Rescue rescue;

// Async-signal-safe.
void restore()
{
    if (rescue.fd < 0)
        return;
    const int error = errno;
    pollfd room{rescue.fd, POLLOUT, 0};
    [[maybe_unused]] ssize_t written = 0;
    if (::poll(&room, 1, 500) > 0) // avoids write() if the terminal is stopped (Ctrl-S), because it would block forever
        written = ::write(rescue.fd, rescue.restoring.data(), rescue.length);
    ::tcsetattr(rescue.fd, TCSANOW, &rescue.modes);
    rescue.fd = -1;
    errno = error;
}

void restore_and_raise(int signal, siginfo_t* info, void*)
{
    restore();
    const auto at = static_cast<size_t>(std::ranges::find(signals, signal) - signals.begin());
    ::sigaction(signal, &rescue.before[at], nullptr);
    // A fault recurs when the handler returns, and the core dump then shows the faulting instruction. Other signals
    // must be raised again, including signals from the terminal, such as Ctrl-\ (SI_KERNEL).
    constexpr std::array faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const bool was_sent = info->si_code <= 0 || info->si_code == SI_KERNEL;
    if (was_sent || std::ranges::find(faults, signal) == faults.end())
        ::raise(signal);
}

[[noreturn]] void terminate()
{
    restore();
    if (rescue.terminate)
        rescue.terminate();
    std::abort();
}

} // namespace

TerminalRescue::TerminalRescue(int fd, const termios& modes, std::string_view restoring)
{
    rescue.modes = modes;
    rescue.length = std::min(restoring.size(), rescue.restoring.size());
    std::ranges::copy(restoring.substr(0, rescue.length), rescue.restoring.begin());
    rescue.fd = fd;

    stack_t stack{};
    stack.ss_sp = rescue.stack.data();
    stack.ss_size = rescue.stack.size();
    ::sigaltstack(&stack, &rescue.stack_before);
    struct sigaction action {};
    action.sa_sigaction = restore_and_raise;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    // blocked, because tcsetattr() in restore() would otherwise stop a program in the background
    sigaddset(&action.sa_mask, SIGTTOU);
    for (size_t i = 0; i < signals.size(); ++i) {
        ::sigaction(signals[i], nullptr, &rescue.before[i]);
        if (rescue.before[i].sa_handler != SIG_IGN) // signals that are ignored, for example due to nohup, stay ignored
            ::sigaction(signals[i], &action, nullptr);
    }
    rescue.terminate = std::set_terminate(terminate);
    std::atexit(restore); // restore() does nothing after this object was destroyed
    set_exit_on_signal_hook(restore);
}

TerminalRescue::~TerminalRescue()
{
    rescue.fd = -1;
    set_exit_on_signal_hook(nullptr);
    std::set_terminate(rescue.terminate);
    for (size_t i = 0; i < signals.size(); ++i)
        if (rescue.before[i].sa_handler != SIG_IGN)
            ::sigaction(signals[i], &rescue.before[i], nullptr);
    ::sigaltstack(&rescue.stack_before, nullptr);
}

namespace {

constexpr itimerspec half_a_second{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 500'000'000}};

// Static, as a signal handler has no other access to data.
struct Replaced {
    volatile sig_atomic_t terminal = -1, nowhere = -1, ran_out = 0;
};
Replaced replaced;

// Signal handler; async-signal-safe. Redirects the terminal's descriptor to /dev/null. When ncurses retries the
// interrupted write, the write succeeds there.
void replace(int)
{
    const int error = errno;
    ::dup2(replaced.nowhere, replaced.terminal);
    replaced.ran_out = 1;
    errno = error;
}

} // namespace

TerminalPatience::TerminalPatience(int terminal)
    : terminal_(terminal), saved_(::fcntl(terminal, F_DUPFD_CLOEXEC, 3)), null_(::open("/dev/null", O_RDWR | O_CLOEXEC))
{
    replaced.ran_out = 0;
    if (!saved_ || !null_)
        return;
    replaced.terminal = terminal;
    replaced.nowhere = null_.get();
    pollfd room{terminal, POLLOUT, 0};
    if (::poll(&room, 1, 0) == 0) {
        replace(0);
        return;
    }
    struct sigaction action {};
    action.sa_handler = replace;
    ::sigaction(SIGALRM, &action, nullptr);
    sigevent event{};
    // Sends the signal to this thread only, because other threads belong to libraries.
    event.sigev_notify = SIGEV_THREAD_ID;
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
    ::signal(SIGALRM, SIG_IGN); // a signal may still be pending
    if (replaced.ran_out)
        ::dup2(saved_.get(), terminal_);
}

bool TerminalPatience::ran_out() const
{
    return replaced.ran_out;
}

} // namespace gpusnoop

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

namespace gpusnoop {

namespace {

// Returns a terminfo string without its delays, which only historic terminals need.
std::string capability(const char* name)
{
    const char* value = ::tigetstr(name);
    const bool is_none = reinterpret_cast<intptr_t>(value) <= 0; // -1: terminfo does not define a string of this name
    std::string text(is_none ? "" : value);
    for (size_t at; (at = text.find("$<")) != std::string::npos;)
        text.erase(at, text.find('>', at) - at + 1);
    return text;
}

} // namespace

void set_locale()
{
    if (std::setlocale(LC_CTYPE, ""))
        return;
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (!value || !*value)
            continue;
        const std::string locale(value);
        if (locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos)
            std::setlocale(LC_CTYPE, "C.UTF-8");
        return;
    }
}

void check_terminal()
{
    if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
        throw Error("there is no terminal to draw on: standard input and output must both be terminals",
                    no_terminal_needed);
    const char* name = std::getenv("TERM");
    if (!name || !*name)
        throw Error("the terminal type is unknown: TERM is not set", no_terminal_needed);
    int status = 0;
    if (::setupterm(name, STDOUT_FILENO, &status) != OK && status != 1)
        throw Error("the terminal type '" + std::string(name) + "' (TERM) is not known on this machine",
                    "try TERM=xterm-256color; " + std::string(no_terminal_needed));
    const bool can_draw = ::tigetstr("cup") && ::tigetstr("clear") && !::tigetflag("hc");
    ::del_curterm(::cur_term);
    if (!can_draw)
        throw Error("a terminal of type '" + std::string(name) + "' (TERM) cannot position its cursor",
                    no_terminal_needed);
}

std::string restoring_text()
{
    std::string text;
    for (const char* name : {"sgr0", "op", "rmkx", "cnorm", "rmcup"})
        text += capability(name);
    if (!capability("kmous").empty())
        text +=
            // switches off mouse reports, which ncurses 6.4 may have switched on; terminfo has no string to do this
            "\033[?1000l\033[?1006l";
    return text + "\r\n";
}

} // namespace gpusnoop

#define NCURSES_NOMACROS
#include <curses.h>

namespace gpusnoop {

Theme colours(int count)
{
    Theme theme{};
    const auto set = [&](Style style, Look look) { theme[static_cast<size_t>(style)] = look; };
    set(Style::dim, count >= 16 ? Look{8, -1} : Look{-1, -1, WA_DIM});
    set(Style::title, {-1, -1, WA_BOLD});
    set(Style::header, {COLOR_BLACK, COLOR_GREEN});
    set(Style::sorted, {COLOR_BLACK, COLOR_CYAN});
    set(Style::device, {COLOR_BLUE, -1, WA_BOLD});
    set(Style::selected, {COLOR_BLACK, COLOR_CYAN});
    set(Style::branch, {COLOR_MAGENTA, -1, WA_BOLD});
    set(Style::total, {-1, -1, WA_BOLD});
    set(Style::alarm, {COLOR_RED, -1, WA_BOLD});
    set(Style::warning, {COLOR_YELLOW, -1, WA_BOLD});
    set(Style::notice, {COLOR_BLACK, COLOR_YELLOW});
    set(Style::bar, {COLOR_GREEN, -1});
    set(Style::hint, {COLOR_BLACK, COLOR_CYAN});
    return theme;
}

Theme mono()
{
    Theme theme{};
    const auto set = [&](Style style, attr_t attributes) { theme[static_cast<size_t>(style)].attributes = attributes; };
    set(Style::title, WA_BOLD);
    set(Style::header, WA_REVERSE);
    set(Style::sorted, WA_REVERSE | WA_BOLD | WA_UNDERLINE);
    set(Style::selected, WA_REVERSE | WA_BOLD);
    set(Style::branch, WA_BOLD);
    set(Style::total, WA_BOLD);
    set(Style::alarm, WA_BOLD | WA_REVERSE);
    set(Style::warning, WA_BOLD);
    set(Style::notice, WA_BOLD);
    set(Style::hint, WA_BOLD);
    return theme;
}

} // namespace gpusnoop
