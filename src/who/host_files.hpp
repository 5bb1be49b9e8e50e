// SPDX-License-Identifier: Apache-2.0
// Reader of small files of the host. The host's root may be mounted elsewhere, as in a container started with -v
// /:/host.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Paths and absolute symlinks are relative to the root: a link to /data means the host's /data.
class HostFiles {
public:
    explicit HostFiles(const std::string& root); // if the root cannot be opened, no files are found

    // Returns a reader for a folder that a user controls. It does not follow symlinks or enter other file systems,
    // because the user's FUSE server could make us hang.
    HostFiles untrusted(const std::string& path) const;

    // Returns the file's contents; nullopt if there is no such regular file, or if it is larger than max_size bytes.
    // Does not block, even if the path leads to a FIFO or device.
    std::optional<std::string> read(const std::string& path) const;
    static constexpr size_t max_size = 4 << 20;

    // Returns the names in a folder, without hidden ones, up to max_names. Empty if the folder does not exist.
    std::vector<std::string> list(const std::string& path) const;
    static constexpr size_t max_names = 65536;

private:
    HostFiles(Fd root, uint64_t resolve) : root_(std::move(root)), resolve_(resolve) {}
    Fd open(const std::string& path, int flags) const;

    Fd root_;
    uint64_t resolve_; // RESOLVE_* flags for openat2()
};

// Names of processes' effective users, from the host's /etc/passwd.
class Users {
public:
    explicit Users(const std::string& host_root);

    // Returns the user's name, or the uid if /etc/passwd does not list it (users of a directory service or a
    // container). nullopt if the process has exited.
    std::optional<std::string> of(pid_t pid) const;

private:
    std::map<uint32_t, std::string> names_; // by uid
};

} // namespace gpusnoop
