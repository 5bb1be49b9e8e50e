// SPDX-License-Identifier: Apache-2.0
#include "base/non_blocking_writer.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace gpusnoop {
namespace {

bool has_room(int fd, int longest_ms)
{
    pollfd ready{fd, POLLOUT, 0};
    return ::poll(&ready, 1, longest_ms) > 0;
}

} // namespace

// O_NONBLOCK belongs to the description, which is shared: a shell would find its terminal changed. A pipe or a terminal
// that is opened again has another one. Files and other devices do not wait for a reader.
NonBlockingWriter::NonBlockingWriter(int fd) : fd_(fd)
{
    struct stat st {};
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || ::fstat(fd, &st))
        return;
    socket_ = S_ISSOCK(st.st_mode);
    if ((flags & O_NONBLOCK) || !(S_ISFIFO(st.st_mode) || ::isatty(fd)))
        return;
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own_ = Fd(::open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    may_block_ = !own_;
}

ssize_t NonBlockingWriter::write(std::string_view bytes) const
{
    if (may_block_) {
        if (!has_room(fd_, 0))
            return 0;
        bytes = bytes.substr(0, PIPE_BUF); // a pipe that has room has room for this
    }
    const ssize_t written = socket_ ? ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : ::write(fd(), bytes.data(), bytes.size());
    if (written >= 0)
        return written;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

void NonBlockingWriter::wait(std::chrono::milliseconds longest) const
{
    has_room(fd(), static_cast<int>(longest.count()));
}

} // namespace gpusnoop
