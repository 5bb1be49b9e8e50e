// SPDX-License-Identifier: Apache-2.0
// Small files of the host, whose root may be mounted somewhere else (in a container: -v /:/host).
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Paths are relative to the root, and so are absolute links below it: a link to /data means the host's /data.
class HostFiles {
public:
    explicit HostFiles(const std::string& root); // empty where it cannot be opened

    // A folder whose owner may put anything in it: no links and no other file systems are followed there (a user's FUSE
    // could hang us).
    HostFiles untrusted(const std::string& path) const;

    // nullopt where there is no such file, where it is not a regular one or where it has more than max_size bytes.
    // Neither a FIFO nor a device blocks.
    std::optional<std::string> read(const std::string& path) const;
    static constexpr size_t max_size = 4 << 20;

    // What is in a folder, hidden entries left out; no more than max_names, none where there is no such folder.
    std::vector<std::string> list(const std::string& path) const;
    static constexpr size_t max_names = 65536;

private:
    HostFiles(Fd root, uint64_t resolve) : root_(std::move(root)), resolve_(resolve) {}
    Fd open(const std::string& path, int flags) const;

    Fd root_;
    uint64_t resolve_; // RESOLVE_* of openat2
};

// Whose a process is: the name of its effective user, as the host's own list of users has it.
class Users {
public:
    explicit Users(const std::string& host_root);

    // The name, or the number where the list has none (a directory's, a container's own); nullopt: the process is gone.
    std::optional<std::string> of(pid_t pid) const;

private:
    std::map<uint32_t, std::string> names_; // by uid
};

} // namespace gpusnoop
