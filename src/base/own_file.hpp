// SPDX-License-Identifier: Apache-2.0
// A small file that is ours alone, in folders that are ours alone: where variables of the environment say that it is,
// and root must neither believe nor write what another user could have put there.
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

    // root: a folder that is there; below: the folders in it, which are made when they are needed, and the file.
    OwnFile(std::string root, std::vector<std::string> below);

    // In $XDG_CONFIG_HOME, else in ~/.config. nullopt where the environment says nothing of either.
    static std::optional<OwnFile> of_settings(const std::string& name);

    std::string path() const;

    // nullopt where there is none. Throws Error where it cannot be read, is not ours alone, no regular file or too
    // large; which is said so that "it is ignored:" can stand before it.
    std::optional<std::string> read() const;

    // All of it or nothing. Throws Error.
    void write(std::string_view text) const;

private:
    Fd folder(bool make) const; // empty where one is missing

    std::string root_;
    std::vector<std::string> folders_;
    std::string name_;
};

} // namespace gpusnoop
