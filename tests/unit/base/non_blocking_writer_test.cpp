// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/base/pipe.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>

using namespace gpusnoop;

namespace {

// Writes up to a megabyte without a reader, and returns the number of bytes written. Also checks that the descriptor
// itself remains in blocking mode.
size_t bytes_written(int fd)
{
    const std::string much(1 << 20, 'x');
    const NonBlockingWriter out(fd);
    size_t total = 0;
    for (ssize_t n; total < much.size() && (n = out.write(much)) > 0;)
        total += static_cast<size_t>(n);
    CHECK_FALSE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
    return total;
}

Ends terminal_ends()
{
    Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(::unlockpt(master.get()) == 0);
    Fd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(slave);
    return {std::move(master), std::move(slave)};
}

Ends socket_ends()
{
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    return {Fd(fds[0]), Fd(fds[1])};
}

} // namespace

TEST_CASE("a write without a reader does not block", "[util]")
{
    for (Ends (*make)() : {pipe_ends, terminal_ends, socket_ends}) {
        const Ends ends = make();
        const size_t some = bytes_written(ends.writing.get());
        CHECK(some > 0);
        CHECK(some < 1 << 20);
        CHECK(bytes_written(ends.writing.get()) < some); // need not be 0, since a terminal may have consumed some bytes
    }
}

TEST_CASE("writing without a reader, or to an unwritable descriptor, is an error", "[util]")
{
    ::signal(SIGPIPE, SIG_IGN);
    Ends pipe = pipe_ends(), socket = socket_ends();
    CHECK(NonBlockingWriter(pipe.reading.get()).write("x") == -EBADF);
    pipe.reading = Fd();
    {
        const Fd closed(std::move(pipe.reading)), closed_too(std::move(socket.reading));
    }
    CHECK(NonBlockingWriter(pipe.writing.get()).write("x") == -EPIPE);
    CHECK(NonBlockingWriter(socket.writing.get()).write("x") == -EPIPE);
    CHECK(NonBlockingWriter(-1).write("x") == -EBADF);
    const Fd path(::open("/", O_PATH | O_CLOEXEC)), full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    CHECK(NonBlockingWriter(path.get()).write("x") == -EBADF);
    CHECK(NonBlockingWriter(full.get()).write("x") == -ENOSPC);
}

TEST_CASE("a file is written at its current offset", "[util]")
{
    const Fd file(::memfd_create("out", MFD_CLOEXEC));
    REQUIRE(::write(file.get(), "one ", 4) == 4);
    CHECK(NonBlockingWriter(file.get()).write("two") == 3);
    char text[8]{};
    CHECK(::pread(file.get(), text, sizeof(text), 0) == 7);
    CHECK(std::string(text) == "one two");
}
