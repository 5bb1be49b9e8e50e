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

    // root: an existing folder. below: the names of folders in it, created when needed, and last the file.
    OwnFile(std::string root, std::vector<std::string> below);

    // In $XDG_CONFIG_HOME, else in ~/.config. nullopt if neither XDG_CONFIG_HOME nor HOME is an absolute path.
    static std::optional<OwnFile> of_settings(const std::string& name);

    std::string path() const;

    // nullopt if there is none. Throws Error if it cannot be read, other users can change it, or it is too large or not
    // a regular file. The message can follow "it is ignored: ".
    std::optional<std::string> read() const;

    // Replaces the file atomically. Throws Error.
    void write(std::string_view text) const;

private:
    Fd folder(bool create) const; // empty if it does not exist

    std::string root_;
    std::vector<std::string> folders_;
    std::string name_;
};

} // namespace gpusnoop
