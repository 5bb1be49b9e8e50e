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

// How many files this process may have open (RLIMIT_NOFILE), and how many it has.
size_t descriptor_limit();
size_t open_descriptors();

// What is left of a file whose length others decide: where that is more than `max` bytes, only the beginning, which is
// longer than `max`, too. nullopt where it cannot be read.
std::optional<std::string> read_text(const Fd& file, size_t max);
// flags: of open(), besides reading.
std::optional<std::string> read_text(const std::string& path, size_t max, int flags = 0);

// To a regular file, however many times that takes. False with errno where it cannot be written.
bool write_all(int fd, std::string_view bytes);

// Regular files at paths that others choose. What is there is found out before it is opened: to open a device, a
// terminal or a FIFO acts on it.

// Where a file would be opened (O_PATH), and which one that is.
struct FoundFile {
    Fd where;
    uint64_t device = 0, inode = 0; // as stat() shows them
    int64_t changed_ns = 0;         // when, as far as the kernel knows
};

// A regular file below this folder. Links, absolute ones, too, do not lead out of it, as for a process whose root it
// is. nullopt with errno if there is none (EINVAL: not a regular file).
std::optional<FoundFile> find_regular(const Fd& root, const std::string& path);

// The regular file that a link of /proc stands for, which no path need lead to.
std::optional<FoundFile> find_regular_behind(const std::string& proc_link);

// The one that this descriptor (O_PATH) stands for.
std::optional<FoundFile> find_regular_at(Fd where);

// openat2() with these RESOLVE_*; empty with errno.
Fd open_below(const Fd& root, const std::string& path, int flags, uint64_t resolve);

// For reading; empty where that is not allowed.
Fd open_found(const FoundFile& found);

// Writes to a descriptor of which nobody knows what is behind it, and waits for no reader: a pipe may be one that
// nobody reads, a terminal may be stopped.
class NonBlockingWriter {
public:
    explicit NonBlockingWriter(int fd); // not owned; as blocking as whoever shares it wants it

    // How many bytes were taken, 0 where there is no room now, or -errno. SIGPIPE must be ignored.
    ssize_t write(std::string_view bytes) const;
    // Until there is room, or the next write() says why there will never be any.
    void wait(std::chrono::milliseconds longest) const;

private:
    int fd() const { return own_ ? own_.get() : fd_; }

    int fd_;
    Fd own_; // a description of our own that does not block
    bool socket_ = false;
    bool may_block_ = false; // no such description could be had
};

} // namespace gpusnoop
