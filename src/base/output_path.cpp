// SPDX-License-Identifier: Apache-2.0
#include "base/output_path.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr int links_max = 40; // same as the kernel's limit

bool is_trusted(uid_t user)
{
    return user == 0 || user == geteuid();
}

// If a folder has the sticky bit, only the owner of a link in it may rename the link.
bool is_safe_link(const struct stat& link, const struct stat& folder)
{
    const bool others_may_rename = (folder.st_mode & (S_IWGRP | S_IWOTH)) && !(folder.st_mode & S_ISVTX);
    return is_trusted(link.st_uid) && is_trusted(folder.st_uid) && !others_may_rename;
}

bool is_in_procfs(const Fd& file)
{
    struct statfs system {};
    return fstatfs(file.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

Fd open_start(std::string_view path)
{
    return Fd(open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::string target_of(const Fd& link)
{
    char target[PATH_MAX];
    const ssize_t size = readlinkat(link.get(), "", target, sizeof(target));
    return {target, size > 0 ? static_cast<size_t>(size) : 0};
}

} // namespace

Fd open_folder(std::string_view path, std::string_view what_fails)
{
    Fd at = open_start(path);
    std::string rest(path);
    for (int links = 0; at;) {
        rest.erase(0, rest.find_first_not_of('/'));
        if (rest.empty())
            break;
        const std::string name = rest.substr(0, rest.find('/'));
        rest.erase(0, name.size());
        Fd next(openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        struct stat folder {
        }, found{};
        if (!next || fstat(at.get(), &folder) != 0 || fstat(next.get(), &found) != 0)
            return {};
        if (!S_ISLNK(found.st_mode)) {
            at = std::move(next);
            continue;
        }
        if (!is_safe_link(found, folder))
            throw Error(
                fmt::format("{}: its folder is behind the symbolic link '{}', which another user may have created",
                            what_fails, printable(name)),
                "use the path that the link points to");
        if (++links > links_max) {
            errno = ELOOP;
            return {};
        }
        if (is_in_procfs(next)) { // the text of a link such as /proc/PID/root may differ from its target
            at = Fd(openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            continue;
        }
        rest.insert(0, target_of(next) + '/');
        if (rest.starts_with('/'))
            at = open_start(rest);
    }
    if (struct stat st{}; at && fstat(at.get(), &st) == 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return {};
    }
    return at;
}

bool replace_file(const Fd& folder, const std::string& name, std::string_view bytes, mode_t mode, Durable durable)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return false;
    const std::string temporary = fmt::format("{}.{}.{:08x}", name, getpid(), random);
    const Fd file(openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file)
        return false;
    const bool to_disk = durable == Durable::yes;
    if (!write_all(file.get(), bytes) || fchmod(file.get(), mode) != 0 || (to_disk && fsync(file.get()) != 0) ||
        renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0) {
        const int error = errno;
        unlinkat(folder.get(), temporary.c_str(), 0);
        errno = error;
        return false;
    }
    // Ignore errors, because some file systems cannot sync a folder.
    if (const Fd readable(to_disk ? openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1); readable)
        fsync(readable.get());
    return true;
}

OutputPath::OutputPath(std::string path, std::string_view kind, std::string_view begin)
    : path_(std::move(path)), name_(path_.substr(path_.rfind('/') + 1)), kind_(kind), begin_(begin)
{
    folder_ = open_folder(std::string_view(path_).substr(0, path_.size() - name_.size()), cannot_write());
    if (!folder_)
        throw Error(fmt::format("{}: its folder cannot be opened: {}", cannot_write(), errno_text(errno)),
                    "create the folder, or name another file");
}

std::string OutputPath::cannot_write(std::string_view suffix) const
{
    return fmt::format("the {} '{}{}' cannot be written", kind_, printable(path_), suffix);
}

void OutputPath::refuse(std::string_view suffix, std::string_view why) const
{
    throw Error(fmt::format("{}: {}", cannot_write(suffix), why));
}

Fd OutputPath::open(mode_t mode, std::string_view suffix) const
{
    Fd file = open_existing(suffix);
    return file ? std::move(file) : create(mode, suffix);
}

// Does not use O_CREAT or O_TRUNC, so that a file that is refused below stays unchanged.
Fd OutputPath::open_existing(std::string_view suffix) const
{
    const std::string name = name_ + std::string(suffix);
    constexpr int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    Fd file(openat(folder_.get(), name.c_str(), flags));
    if (!file && errno == ENOENT)
        return {};
    if (!file)
        refuse(suffix, errno == ELOOP ? "it is a symbolic link" : errno_text(errno));
    struct stat st {
    }, folder{};
    if (fstat(file.get(), &st) != 0 || fstat(folder_.get(), &folder) != 0)
        refuse(suffix, errno_text(errno));
    if (!S_ISREG(st.st_mode))
        refuse(suffix, "it is not a regular file");
    const auto refuse_foreign = [&](std::string_view why) {
        throw Error(fmt::format("'{}{}' {}; refusing to overwrite it", printable(path_), suffix, why),
                    "name another file, or move this one away");
    };
    if (st.st_uid != geteuid() && st.st_uid != folder.st_uid)
        refuse_foreign("exists and belongs to another user");
    std::string first(begin_.size(), '\0');
    if (st.st_size &&
        (pread(file.get(), first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()) || first != begin_))
        refuse_foreign(fmt::format("exists and is not a gpusnoop {}", kind_));
    return file;
}

Fd OutputPath::create(mode_t mode, std::string_view suffix) const
{
    const std::string name = name_ + std::string(suffix);
    Fd file(openat(folder_.get(), name.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file)
        refuse(suffix, errno_text(errno));
    return file;
}

void OutputPath::replace(std::string_view bytes, mode_t mode, Durable durable) const
{
    open_existing();
    if (!replace_file(folder_, name_, bytes, mode, durable))
        refuse({}, errno_text(errno));
}

void OutputPath::rename(const Fd& file, std::string_view suffix) const
{
    struct stat current {
    }, opened{};
    if (fstatat(folder_.get(), name_.c_str(), &current, AT_SYMLINK_NOFOLLOW) != 0 || fstat(file.get(), &opened) != 0)
        refuse({}, errno_text(errno));
    if (current.st_dev != opened.st_dev || current.st_ino != opened.st_ino)
        refuse({}, "another file has replaced it");
    open_existing(suffix);
    if (renameat(folder_.get(), name_.c_str(), folder_.get(), (name_ + std::string(suffix)).c_str()) != 0)
        refuse(suffix, errno_text(errno));
}

void OutputPath::remove() const noexcept
try {
    if (open_existing())
        unlinkat(folder_.get(), name_.c_str(), 0);
} catch (const Error&) {}

ResultFile::ResultFile(std::string path, std::string_view begin, std::string_view kind)
    : path_(std::move(path), kind, begin), kind_(kind), file_(path_.open(0644))
{}

void ResultFile::write(std::string_view bytes)
{
    if ((!std::exchange(begun_, true) && ftruncate(file_.get(), 0)) || !write_all(file_.get(), bytes))
        throw Error(fmt::format("the {} '{}' is incomplete: it cannot be written: {}", kind_, printable(path_.path()),
                                errno_text(errno)));
}

} // namespace gpusnoop
