// SPDX-License-Identifier: Apache-2.0
// Safe access to a file that a tool writes, possibly as root in another user's folder. Only the tool's own files are
// written, replaced or removed.
#pragma once

#include "base/fd.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

// Opens a folder with O_PATH. A symbolic link in its path is followed only if no other user can have created it: the
// link and its folder belong to root or the effective user, and other users cannot rename files in that folder. Any
// other link causes an Error whose message begins with `what_fails`. If the folder cannot be opened, returns an empty
// Fd and sets errno.
Fd open_folder(std::string_view path, std::string_view what_fails);

enum class Durable : bool { no, yes }; // yes: the data is on disk when the call returns

// Replaces a file atomically, through a temporary file NAME.PID.RANDOM in the same folder. On error, keeps the old
// file, returns false and sets errno.
bool replace_file(const Fd& folder, const std::string& name, std::string_view bytes, mode_t mode, Durable durable);

// A path of an output file. Its folder is opened only once, so that later changes of the path cannot redirect a write.
// `suffix` selects a related file in the same folder, such as FILE.1. An existing file counts as the tool's own if it
// is a regular file, belongs to the effective user or the folder's owner, and is empty or begins with `begin`. All
// methods except remove() throw Error.
class OutputPath {
public:
    // kind: a noun for messages, such as "recording".
    OutputPath(std::string path, std::string_view kind, std::string_view begin);

    const std::string& path() const { return path_; }

    // Opens the file for reading and appending; creates it if it does not exist.
    Fd open(mode_t mode, std::string_view suffix = {}) const;
    // Like open(), but returns an empty Fd if the file does not exist.
    Fd open_existing(std::string_view suffix = {}) const;
    // Like open(), but throws Error if the file exists.
    Fd create(mode_t mode, std::string_view suffix = {}) const;

    void replace(std::string_view bytes, mode_t mode, Durable durable) const;
    // Appends `suffix` to the file's name, and replaces an older file of that name. Throws Error unless the path still
    // leads to `file`.
    void rename(const Fd& file, std::string_view suffix) const;
    // Removes the file, but only if it is the tool's own.
    void remove() const noexcept;

private:
    std::string cannot_write(std::string_view suffix = {}) const;
    [[noreturn]] void refuse(std::string_view suffix, std::string_view why) const;

    std::string path_, name_, kind_, begin_;
    Fd folder_;
};

// A result file that each run overwrites.
class ResultFile {
public:
    // begin, kind: see OutputPath. Keeps the file's old contents until the first write(). Throws Error if the file
    // exists and is not the tool's own.
    ResultFile(std::string path, std::string_view begin, std::string_view kind);

    // The first call overwrites the file; later calls append to it. Throws Error.
    void write(std::string_view bytes);

private:
    OutputPath path_;
    std::string kind_;
    Fd file_;
    bool begun_ = false;
};

} // namespace gpusnoop
