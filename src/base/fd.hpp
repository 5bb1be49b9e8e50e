// SPDX-License-Identifier: Apache-2.0
// File descriptors, small files and writes that do not block.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <dirent.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

// Owns a file descriptor.
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

struct DirCloser {
    void operator()(DIR* directory) const { closedir(directory); }
};

using Directory = std::unique_ptr<DIR, DirCloser>;

size_t descriptor_limit(); // RLIMIT_NOFILE
size_t open_descriptors(); // number of descriptors that this process has open

// Reads a file from its current position to the end. Stops once it has read more than `max` bytes, so a result of more
// than `max` bytes may be incomplete. nullopt on error.
std::optional<std::string> read_text(const Fd& file, size_t max);
// flags: additional flags for open().
std::optional<std::string> read_text(const std::string& path, size_t max, int flags = 0);

// Writes all bytes to a regular file, and continues after short writes. On error, returns false and sets errno.
bool write_all(int fd, std::string_view bytes);

// Regular files at untrusted paths. The type of a file is checked before it is opened for reading, because opening a
// device, terminal or FIFO has side effects.

struct FoundFile {
    Fd where;                       // opened with O_PATH
    uint64_t device = 0, inode = 0; // as in stat()
    int64_t changed_ns = 0;         // ctime as cached by the kernel
};

// Finds a regular file. Symbolic links are resolved as for a process whose root directory is `root`. On error, returns
// nullopt and sets errno (EINVAL: not a regular file).
std::optional<FoundFile> find_regular(const Fd& root, const std::string& path);

// Finds the regular file behind a link in /proc, such as /proc/PID/exe. The file may have been deleted.
std::optional<FoundFile> find_regular_by_link(const std::string& proc_link);

// Checks that an O_PATH descriptor refers to a regular file.
std::optional<FoundFile> find_regular_by_fd(Fd where);

// Calls openat2(). resolve: RESOLVE_* flags. On error, returns an empty Fd and sets errno.
Fd open_below(const Fd& root, const std::string& path, int flags, uint64_t resolve);

// Opens the file for reading. On error, returns an empty Fd and sets errno.
Fd open_found(const FoundFile& found);

// Writes to any kind of descriptor without blocking, even to a full pipe or a stopped terminal.
class NonBlockingWriter {
public:
    explicit NonBlockingWriter(int fd); // fd is not owned, and its flags are not changed

    // Returns the number of bytes written, 0 if the descriptor is not writable now, or -errno. SIGPIPE must be ignored.
    ssize_t write(std::string_view bytes) const;
    // Waits until write() would write something or fail, for at most `timeout`.
    void wait(std::chrono::milliseconds timeout) const;

private:
    int fd() const { return own_ ? own_.get() : fd_; }

    int fd_;
    Fd own_; // the file reopened with O_NONBLOCK; empty if not needed
    bool socket_ = false;
    bool may_block_ = false; // true if reopening failed; poll() is then called before each write
};

} // namespace gpusnoop
