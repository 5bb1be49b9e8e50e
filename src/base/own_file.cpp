// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/output_path.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

namespace gpusnoop {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view action, int error)
{
    if (error == ELOOP)
        throw Error(fmt::format("'{}' is a symbolic link", path));
    throw Error(fmt::format("'{}' cannot be {}: {}", path, action, errno_text(error)));
}

// Throws Error unless the file or folder belongs to the effective user, and only its owner can write to it.
void check_owner(const Fd& fd, const std::string& path, mode_t type)
{
    struct stat st {};
    if (fstat(fd.get(), &st) != 0)
        fail(path, "checked", errno);
    if ((st.st_mode & S_IFMT) != type)
        throw Error(fmt::format("'{}' is not a {}", path, type == S_IFDIR ? "folder" : "regular file"));
    if (st.st_uid != geteuid())
        throw Error(fmt::format("'{}' belongs to another user", path));
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        throw Error(fmt::format("'{}' can be written by others (chmod go-w)", path));
}

std::string variable(const char* name)
{
    const char* const value = secure_getenv(name);
    return value && value[0] == '/' ? value : "";
}

} // namespace

OwnFile::OwnFile(std::string root, std::vector<std::string> below)
    : root_(std::move(root)), folders_(std::move(below)), name_(std::move(folders_.back()))
{
    folders_.pop_back();
}

std::optional<OwnFile> OwnFile::of_settings(const std::string& name)
{
    if (const std::string folder = variable("XDG_CONFIG_HOME"); !folder.empty())
        return OwnFile(folder, {"gpusnoop", name});
    if (const std::string home = variable("HOME"); !home.empty())
        return OwnFile(home, {".config", "gpusnoop", name});
    return std::nullopt;
}

std::string OwnFile::path() const
{
    std::string path = root_;
    for (const std::string& folder : folders_)
        path += '/' + folder;
    return path + '/' + name_;
}

// Opens the folders one by one, and checks the owner of each before opening the next.
Fd OwnFile::folder(bool create) const
{
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    std::string path = root_;
    Fd at = open_folder(path, fmt::format("'{}' cannot be opened", path));
    if (!at && errno != ENOENT)
        fail(path, "opened", errno);
    if (!at && create)
        fail(path, "opened", ENOENT);
    for (auto below = folders_.begin(); at; ++below) {
        check_owner(at, path, S_IFDIR);
        if (below == folders_.end())
            break;
        path += '/' + *below;
        if (create && mkdirat(at.get(), below->c_str(), 0700) != 0 && errno != EEXIST)
            fail(path, "created", errno);
        at = Fd(openat(at.get(), below->c_str(), flags | O_NOFOLLOW));
        if (!at && (create || errno != ENOENT)) {
            // A symbolic link also yields ENOTDIR, because the kernel checks O_DIRECTORY before O_NOFOLLOW.
            if (errno == ENOTDIR)
                throw Error(fmt::format("'{}' is not a folder", path));
            fail(path, "opened", errno);
        }
    }
    return at;
}

std::optional<std::string> OwnFile::read() const
{
    const Fd folder = this->folder(false);
    if (!folder)
        return std::nullopt;
    const Fd file(openat(folder.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file && errno == ENOENT)
        return std::nullopt;
    if (!file)
        fail(path(), "opened", errno);
    check_owner(file, path(), S_IFREG);
    auto text = read_text(file, size_max);
    if (!text)
        fail(path(), "read", errno);
    if (text->size() > size_max)
        throw Error(fmt::format("'{}' is larger than {}K", path(), size_max >> 10));
    return text;
}

void OwnFile::write(std::string_view text) const
{
    if (!replace_file(folder(true), name_, text, 0600, Durable::no))
        fail(path(), "written", errno);
}

} // namespace gpusnoop
