// SPDX-License-Identifier: Apache-2.0
#include "names/scan_cache.hpp"

#include "base/error.hpp"
#include "base/output_path.hpp"
#include "names/registration_scan.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

bool is_private(int fd, mode_t type)
{
    struct stat st {};
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

// Returns an empty string if the file has no build-id, because nothing else identifies its contents reliably.
std::string file_name(std::string_view build_id, uint64_t file_size)
{
    const bool hex =
        std::ranges::all_of(build_id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    return hex && build_id.size() >= 16 ? fmt::format("{}-{}", build_id, file_size) : std::string();
}

Directory entries_of(int folder)
{
    return Directory(fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
}

// Removes the oldest files until a new file of this size fits.
void make_room(int folder, uint64_t bytes)
{
    struct CachedFile {
        time_t changed;
        std::string name;
        uint64_t size;
    };
    const Directory directory = entries_of(folder);
    std::vector<CachedFile> entries;
    uint64_t total = bytes;
    while (directory && entries.size() < ScanCache::files_max) {
        const dirent* const entry = readdir(directory.get());
        struct stat st {};
        if (!entry)
            break;
        if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        entries.push_back({st.st_mtime, entry->d_name, static_cast<uint64_t>(st.st_size)});
        total += entries.back().size;
    }
    std::ranges::sort(entries, {}, &CachedFile::changed);
    size_t left = entries.size();
    for (const CachedFile& entry : entries) {
        if (total <= ScanCache::size_max && left < ScanCache::files_max)
            break;
        unlinkat(folder, entry.name.c_str(), 0);
        total -= entry.size;
        left--;
    }
}

} // namespace

std::string ScanCache::default_folder()
{
    const auto variable = [](const char* name) {
        const char* const value = secure_getenv(name);
        return std::string(value && value[0] == '/' ? value : "");
    };
    if (std::string given = variable("CACHE_DIRECTORY"); !given.empty())
        return given;
    if (geteuid() == 0)
        return "/var/cache/gpusnoop";
    if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
        return cache + "/gpusnoop";
    const std::string home = variable("HOME");
    return home.empty() ? "" : home + "/.cache/gpusnoop";
}

Fd ScanCache::folder() const
{
    Fd opened(path_.empty() ? -1 : open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return opened && is_private(opened.get(), S_IFDIR) ? std::move(opened) : Fd();
}

std::optional<Registrations> ScanCache::find(std::string_view build_id, uint64_t file_size) const
{
    const std::string name = file_name(build_id, file_size);
    const Fd folder = name.empty() ? Fd() : this->folder();
    if (!folder)
        return std::nullopt;
    const Fd file(openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    return file && is_private(file.get(), S_IFREG) ? registrations_in(file) : std::nullopt;
}

// Several processes may write the same entry. Each writes its own temporary file, and the last rename wins.
void ScanCache::keep(std::string_view build_id, uint64_t file_size, const Registrations& registrations) const
{
    const std::string name = file_name(build_id, file_size);
    if (path_.empty() || name.empty())
        return;
    mkdir(path_.c_str(), 0700);
    const Fd folder = this->folder();
    if (!folder)
        return;
    const std::string bytes = encode(registrations);
    make_room(folder.get(), bytes.size());
    replace_file(folder, name, bytes, 0600, Durable::no);
}

unsigned ScanCache::remove_unfinished() const
{
    const Fd folder = this->folder();
    const Directory directory = folder ? entries_of(folder.get()) : nullptr;
    std::vector<std::string> unfinished;
    while (directory) {
        const dirent* const entry = readdir(directory.get());
        if (!entry)
            break;
        char id[129]; // a build-id has at most 64 bytes, which are 128 hex digits
        unsigned long long size = 0;
        pid_t writer = 0;
        int end = 0;
        char random[9];
        if (sscanf(entry->d_name, "%128[0-9a-f]-%llu.%d.%8[0-9a-f]%n", id, &size, &writer, random, &end) == 4 &&
            !entry->d_name[end] && writer > 0 && !is_alive(writer))
            unfinished.emplace_back(entry->d_name);
    }
    unsigned removed = 0;
    for (const std::string& name : unfinished)
        removed += unlinkat(folder.get(), name.c_str(), 0) == 0;
    return removed;
}

namespace {

constexpr std::chrono::seconds hang_timeout(30); // the disk may be slow
constexpr uint64_t cpu_seconds = 5;              // cuBLASLt takes 1.3 s
constexpr uint64_t memory_bytes = 256 << 20;     // on top of the memory that the tool itself uses
constexpr uint32_t calls[] = {SYS_recvmsg, SYS_sendmsg};

// Sends an empty answer if the file cannot be scanned.
void serve(Helper::Task& task)
{
    while (auto message = task.connection.receive()) {
        std::string found;
        try {
            found = encode(scan_registrations(Elf(std::move(message->file))));
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
        if (!send_in_parts(task.connection, found))
            return;
    }
}

} // namespace

Scanner::Scanner()
    : parts_(encoded_max),
      reader_({.sandbox =
                   Sandbox{.calls = calls, .memory_bytes = memory_bytes, .cpu_seconds = cpu_seconds, .output_bytes = 0},
               .serve = serve,
               .apply_part =
                   [this](const Reader::Part& part) {
                       const Reader::Reply reply = parts_.add(part.message.bytes);
                       if (reply == Reader::Reply::complete) {
                           answer_ = decode_registrations(parts_.extract());
                           is_busy_ = false;
                       }
                       return reply;
                   },
               .restarted =
                   [this] {
                       parts_.extract();
                       is_busy_ = false;
                   },
               .consequence = "kernels of its files have no names",
               .hang_timeout = hang_timeout,
               .limits_shares = false})
{}

bool Scanner::begin(pid_t about, const Fd& file)
{
    reader_.retire_idle(); // the CPU limit covers the whole life of a helper, so each file needs a new helper
    answer_.reset();
    is_busy_ = reader_.post(about, "scan", file.get());
    return is_busy_;
}

bool Scanner::ended()
{
    if (is_busy_)
        reader_.poll();
    if (!is_busy_)
        reader_.retire_idle();
    return !is_busy_;
}

} // namespace gpusnoop
