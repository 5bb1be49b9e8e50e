// SPDX-License-Identifier: Apache-2.0
#include "base/fd.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace gpusnoop {

size_t descriptor_limit()
{
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) ? SIZE_MAX : limit.rlim_cur;
}

size_t open_descriptors()
{
    DIR* folder = opendir("/proc/self/fd");
    if (!folder)
        return descriptor_limit(); // opening the folder fails if no descriptor is free
    size_t entries = 0;
    while (readdir(folder))
        entries++;
    closedir(folder);
    return entries - 3; // without ".", "..", and the descriptor of the folder
}

std::optional<std::string> read_text(const Fd& file, size_t max)
{
    std::string text;
    std::array<char, 16384> buffer;
    while (text.size() <= max) {
        const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
        if (got == 0)
            break;
        if (got > 0)
            text.append(buffer.data(), static_cast<size_t>(got));
        else if (errno != EINTR)
            return std::nullopt;
    }
    return text;
}

std::optional<std::string> read_text(const std::string& path, size_t max, int flags)
{
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
    return file ? read_text(file, max) : std::nullopt;
}

bool write_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = ::write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno != EINTR)
            return false;
        bytes.remove_prefix(done > 0 ? static_cast<size_t>(done) : 0);
    }
    return true;
}

std::optional<FoundFile> find_regular_by_fd(Fd where)
{
    // AT_STATX_DONT_SYNC: do not query a FUSE server, which might never reply.
    struct statx st {};
    if (!where ||
        statx(where.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_CTIME, &st) != 0)
        return std::nullopt;
    if (!S_ISREG(st.stx_mode)) {
        errno = EINVAL;
        return std::nullopt;
    }
    return FoundFile{.where = std::move(where),
                     .device = makedev(st.stx_dev_major, st.stx_dev_minor),
                     .inode = st.stx_ino,
                     .changed_ns = st.stx_ctime.tv_sec * 1'000'000'000 + st.stx_ctime.tv_nsec};
}

std::optional<FoundFile> find_regular(const Fd& root, const std::string& path)
{
    return find_regular_by_fd(open_below(root, path, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
}

std::optional<FoundFile> find_regular_by_link(const std::string& proc_link)
{
    return find_regular_by_fd(Fd(open(proc_link.c_str(), O_PATH | O_CLOEXEC)));
}

Fd open_below(const Fd& root, const std::string& path, int flags, uint64_t resolve)
{
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    how.resolve = resolve;
    return Fd(root ? static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how))) : -1);
}

Fd open_found(const FoundFile& found)
{
    return Fd(
        open(fmt::format("/proc/self/fd/{}", found.where.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

namespace {

bool has_room(int fd, int timeout_ms)
{
    pollfd ready{fd, POLLOUT, 0};
    return ::poll(&ready, 1, timeout_ms) > 0;
}

} // namespace

// O_NONBLOCK cannot be set on the descriptor itself: it is a flag of the open file description, which other processes
// such as the shell share. Reopening a pipe or terminal creates a description of our own. Regular files and other
// devices do not block.
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
        bytes = bytes.substr(0, PIPE_BUF); // a pipe that poll() reports as writable has room for PIPE_BUF bytes
    }
    const ssize_t written = socket_ ? ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : ::write(fd(), bytes.data(), bytes.size());
    if (written >= 0)
        return written;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

void NonBlockingWriter::wait(std::chrono::milliseconds timeout) const
{
    has_room(fd(), static_cast<int>(timeout.count()));
}

} // namespace gpusnoop
