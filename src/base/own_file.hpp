// SPDX-License-Identifier: Apache-2.0
// Small settings file below a folder named by an environment variable. Only this user may own or write the file and its
// folders, so that root cannot be tricked by another user's files.
#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class OwnFile {
public:
    static constexpr size_t size_max = 64 << 10; // bytes

    // root: an existing folder. below: the path from there: folder names, which write() creates, and the file name.
    OwnFile(std::string root, std::vector<std::string> below);

    // The file gpusnoop/NAME in $XDG_CONFIG_HOME, else in ~/.config. nullopt if neither XDG_CONFIG_HOME nor HOME is an
    // absolute path.
    static std::optional<OwnFile> of_settings(const std::string& name);

    std::string path() const;

    // nullopt if the file does not exist. Throws Error if it cannot be read, other users can change it, or it is too
    // large or not a regular file. The message is worded to follow "it is ignored: ".
    std::optional<std::string> read() const;

    // Replaces the file atomically. Throws Error.
    void write(std::string_view text) const;

private:
    Fd folder(bool create) const; // the file's folder; empty if it does not exist

    std::string root_;
    std::vector<std::string> folders_;
    std::string name_;
};

} // namespace gpusnoop
