// SPDX-License-Identifier: Apache-2.0
#include "attach/file_guard.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

// Without a lease, we cannot detect whether a writer still has the file open. The file counts as complete after this
// time without a write; the shorter time applies after inotify has reported that the writer closed the file.
constexpr FileGuard::Clock::duration quiet_after_write = 10s, quiet_after_close = 1s;

// True for local file systems. On others (FUSE, network), opening or closing a file may block forever, and leases are
// never granted.
bool is_local(uint64_t file_system)
{
    constexpr uint32_t zfs = 0x2fc12fc1, bcachefs = 0xca451a4e; // not in linux/magic.h
    constexpr uint32_t local[] = {
        EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, zfs,
        bcachefs,         EROFS_SUPER_MAGIC_V1, SQUASHFS_MAGIC,    TMPFS_MAGIC,      RAMFS_MAGIC};
    return std::ranges::find(local, file_system) != std::end(local);
}

} // namespace

FileGuard::Stamp FileGuard::stamp_of(const Fd& file)
{
    // AT_STATX_DONT_SYNC reads only the kernel's cache, so that a FUSE daemon cannot delay the call.
    struct statx st {};
    statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME | STATX_SIZE, &st);
    return {.modified_ns = st.stx_mtime.tv_sec * 1'000'000'000 + st.stx_mtime.tv_nsec, .size = st.stx_size};
}

FileGuard::FileGuard(Fd& file, const FileId& id)
{
    if (is_local(id.file_system)) {
        // The lease belongs to the inode behind this descriptor. On overlayfs that is the overlay's inode, which all
        // writers in the container open.
        Fd readable(
            open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        lease_ = readable && (fcntl(readable.get(), F_SETLEASE, F_RDLCK) == 0 || errno == EAGAIN);
        if (lease_) {
            open_ = fcntl(readable.get(), F_GETLEASE) != F_RDLCK;
            file = std::move(readable);
        }
    }
    stamp_ = stamp_of(file);
}

bool FileGuard::is_broken(const Fd& file, bool thorough) const
{
    if (!file || open_)
        return false;
    // F_GETLEASE returns F_UNLCK as soon as a writer waits for us to give up the lease (target_leasetype() in
    // fs/locks.c).
    return (lease_ ? fcntl(file.get(), F_GETLEASE) != F_RDLCK : written_) || (thorough && stamp_of(file) != stamp_);
}

void FileGuard::release(const Fd& file)
{
    open_ = true;
    changed_ = Clock::now();
    stamp_ = stamp_of(file);
    if (lease_)
        fcntl(file.get(), F_SETLEASE, F_UNLCK);
}

bool FileGuard::retake(const Fd& file)
{
    if (lease_) {
        if (fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) {
            lease_ = errno == EAGAIN; // any other error means that leases were disabled (fs.leases-enable)
            return false;
        }
    } else {
        const Stamp now = stamp_of(file);
        if (written_ || now != stamp_) {
            changed_ = Clock::now();
            stamp_ = now;
            written_ = false;
        }
        if (Clock::now() - changed_ < (closed_ ? quiet_after_close : quiet_after_write))
            return false;
    }
    stamp_ = stamp_of(file);
    open_ = written_ = closed_ = false;
    return true;
}

void FileGuard::on_watch_event(uint32_t mask)
{
    if (mask & (IN_MODIFY | IN_Q_OVERFLOW)) {
        written_ = true;
        closed_ = false;
        changed_ = Clock::now();
    }
    if (mask & IN_CLOSE_WRITE)
        closed_ = true;
}

WriteSignals::WriteSignals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    leases_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    watches_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)); // if this fails, writes are detected by mtime and size only
    if (!leases_)
        throw Error("cannot create a signalfd: " + errno_text(errno));
}

bool WriteSignals::drain_leases()
{
    signalfd_siginfo info{};
    bool any = false;
    while (::read(leases_.get(), &info, sizeof(info)) == sizeof(info))
        any = true;
    return any;
}

std::optional<std::pair<int, uint32_t>> WriteSignals::next_event()
{
    if (buffer_.empty() && watches_) {
        buffer_.resize(size_t{64} << 10);
        buffer_.resize(
            static_cast<size_t>(std::max<ssize_t>(::read(watches_.get(), buffer_.data(), buffer_.size()), 0)));
    }
    inotify_event event{};
    if (buffer_.size() < sizeof(event))
        return std::nullopt;
    std::memcpy(&event, buffer_.data(), sizeof(event));
    buffer_.erase(0, sizeof(event) + event.len);
    return std::pair(event.wd, event.mask);
}

void WriteSignals::remove(int watch)
{
    if (watch >= 0)
        inotify_rm_watch(watches_.get(), watch);
}

} // namespace gpusnoop
