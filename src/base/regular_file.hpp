// SPDX-License-Identifier: Apache-2.0
// Regular files at paths that others choose. What is there is found out before it is opened: to open a device, a
// terminal or a FIFO acts on it.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Where a file would be opened (O_PATH), and which one that is.
struct FoundFile {
    Fd where;
    uint64_t device = 0, inode = 0; // as stat() shows them
    int64_t changed_ns = 0;         // when, as far as the kernel knows
};

// A regular file below this folder. Links, absolute ones, too, do not lead out of it, as for a process whose root it
// is. nullopt with errno if there is none (EINVAL: not a regular file).
std::optional<FoundFile> find_regular(const Fd& root, const std::string& path);

// The regular file that a link of /proc stands for, which no path need lead to.
std::optional<FoundFile> find_regular_behind(const std::string& proc_link);

// The one that this descriptor (O_PATH) stands for.
std::optional<FoundFile> find_regular_at(Fd where);

// openat2() with these RESOLVE_*; empty with errno.
Fd open_below(const Fd& root, const std::string& path, int flags, uint64_t resolve);

// For reading; empty where that is not allowed.
Fd open_found(const FoundFile& found);

} // namespace gpusnoop
