// SPDX-License-Identifier: Apache-2.0
// Small settings file, in a folder named by an environment variable. The file and its folders must belong to this user
// and be writable by no one else, so that no other user can change the settings of a tool that runs as root.
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

    // root: an existing folder. below: the names of the nested subfolders, which write() creates, followed by the
    // file's name.
    OwnFile(std::string root, std::vector<std::string> below);

    // Returns the file gpusnoop/NAME in $XDG_CONFIG_HOME, else in ~/.config. nullopt if neither XDG_CONFIG_HOME nor
    // HOME is an absolute path.
    static std::optional<OwnFile> of_settings(const std::string& name);

    std::string path() const;

    // Returns nullopt if the file does not exist. Throws Error if the file cannot be read, can be changed by other
    // users, is too large, or is not a regular file. The message begins with the path of the file or folder that caused
    // the error.
    std::optional<std::string> read() const;

    // Replaces the file atomically. Throws Error.
    void write(std::string_view text) const;

private:
    Fd folder(bool create) const; // opens the file's folder; empty if it does not exist

    std::string root_;
    std::vector<std::string> folders_;
    std::string name_;
};

} // namespace gpusnoop
