// SPDX-License-Identifier: Apache-2.0
// Path of a file that a tool writes, perhaps as root in another user's folder: only the tool's own files are written,
// replaced or removed.
#pragma once

#include "base/fd.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

// Opens a folder with O_PATH, as openat() takes it. A symbolic link in its path is followed only if no other user can
// have put it there: the link and its folder belong to root or the effective user, and others may not rename in that
// folder. Throws Error, which begins with `what_fails`, for another link. Empty with errno where there is no such
// folder.
Fd open_folder(std::string_view path, std::string_view what_fails);

enum class Durable : bool { no, yes }; // yes: on the disk before the call returns

// Writes a new file and renames it to `name` in `folder`: there is the old file or the new one at any time. The
// temporary name, NAME.PID.RANDOM, is new as well, so no other file is touched. False with errno, and with the old file
// in place.
bool replace_file(const Fd& folder, const std::string& name, std::string_view bytes, mode_t mode, Durable durable);

// The folder is opened once: what others do to the path afterwards does not redirect a write. A file with `suffix` is
// beside it, as FILE.1 is. An existing file is the tool's own if it is a regular file of the effective user or of the
// folder's owner, and begins with `begin` unless it is empty. All methods but remove() throw Error.
class OutputPath {
public:
    // kind: what messages call the file: "recording".
    OutputPath(std::string path, std::string_view kind, std::string_view begin);

    const std::string& path() const { return path_; }

    // Opens the file for reading and appending, and creates it if it does not exist.
    Fd open(mode_t mode, std::string_view suffix = {}) const;
    // The same for a file that must exist. Empty where there is none.
    Fd open_existing(std::string_view suffix = {}) const;
    // The same for a file that must not exist.
    Fd create(mode_t mode, std::string_view suffix = {}) const;

    void replace(std::string_view bytes, mode_t mode, Durable durable) const;
    // Renames the file, which must still be `file`, and replaces an older one with this suffix.
    void rename(const Fd& file, std::string_view suffix) const;
    // Removes the file if it is the tool's own.
    void remove() const noexcept;

private:
    std::string cannot_write(std::string_view suffix = {}) const;
    [[noreturn]] void refuse(std::string_view suffix, std::string_view why) const;

    std::string path_, name_, kind_, begin_;
    Fd folder_;
};

// A file that results go to, and that is written anew by each run.
class ResultFile {
public:
    // begin: what such a file begins with. what: "flame graph". What is there stays until there is something to write,
    // and for good where it is something else. Throws Error.
    ResultFile(std::string path, std::string_view begin, std::string_view what);

    // Behind what has been written by this run. Throws Error.
    void write(std::string_view bytes);

private:
    OutputPath path_;
    std::string what_;
    Fd file_;
    bool begun_ = false;
};

} // namespace gpusnoop
