// SPDX-License-Identifier: Apache-2.0
// Files of a process: the one behind a mapping, and one at a path.
#pragma once

#include "base/fd.hpp"
#include "base/regular_file.hpp"
#include "proc/process.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// Cuts off the " (deleted)" that /proc adds to the path of a deleted file. False where there is none.
bool cut_deleted(std::string_view& path);

// The file behind a mapping of a process, and no other: through map_files, else through the process' root where that
// still leads to the same inode. nullopt where neither works, with errno.
std::optional<FoundFile> find_mapped(pid_t pid, const Mapping& mapping);

// The regular file that this path leads to for the process, and nothing outside its root. nullopt where it leads to
// none, with errno.
std::optional<FoundFile> find_in_root_of(pid_t pid, const std::string& path);

// Opens what find_mapped() finds, for reading. Empty where there is none, with errno.
Fd open_mapped(pid_t pid, const Mapping& mapping);

// True where that is the file with this inode.
bool leads_to(pid_t pid, const std::string& path, uint64_t inode);

} // namespace gpusnoop
