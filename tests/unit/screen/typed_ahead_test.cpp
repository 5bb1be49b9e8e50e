// SPDX-License-Identifier: Apache-2.0
#include "screen/draw.hpp"
#include "screen/keys.hpp"
#include "tests/unit/base/pipe.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

void type(const Ends& terminal, std::string_view keys)
{
    REQUIRE(::write(terminal.writing.get(), keys.data(), keys.size()) > 0);
}

} // namespace

TEST_CASE("the key q quits, unless an earlier key has opened another page", "[screen]")
{
    for (const char* typed : {"q", "jjq", "2tq", "\033[21~", "j\033[21~"})
        CHECK(quits(typed));
    for (const char* typed :
         {"", "j", "/q", "j/queue", "?q", "\rq", "\033Oq", "\033[", "\033[20~", "w a file called q"})
        CHECK_FALSE(quits(typed));
}

TEST_CASE("during start-up, the screen shows the current step", "[screen]")
{
    ScreenState state({.starting = "Loading 41 programs into the kernel ..."});
    state.size = {60, 6};
    Canvas canvas(60, 6);
    draw(canvas, state, Snapshot());
    CHECK(canvas.line_text(0) == "cudatop  starting");
    CHECK(canvas.line_text(2) == "Loading 41 programs into the kernel ...");
    CHECK(canvas.line_text(5) == "qQuit");
}

TEST_CASE("keys typed ahead are kept", "[screen]")
{
    const Ends terminal = pipe_ends();
    TypedAhead typed(terminal.reading.get());
    type(terminal, "s");
    type(terminal, "q\033[A");
    pollfd unread{terminal.reading.get(), POLLIN, 0};
    while (::poll(&unread, 1, 0) > 0)
        ::usleep(1000);
    CHECK(typed.end() == "sq\033[A");
}

TEST_CASE("a q typed ahead sends SIGINT", "[screen]")
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    ::sigprocmask(SIG_BLOCK, &set, &before);
    const Fd signals(::signalfd(-1, &set, SFD_CLOEXEC));
    {
        const Ends terminal = pipe_ends();
        TypedAhead typed(terminal.reading.get());
        type(terminal, "q");
        pollfd came{signals.get(), POLLIN, 0};
        CHECK(::poll(&came, 1, 10'000) == 1);
        signalfd_siginfo info{};
        CHECK(::read(signals.get(), &info, sizeof(info)) == sizeof(info));
        CHECK(typed.end() == "q");
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
}
