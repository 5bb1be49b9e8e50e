// SPDX-License-Identifier: Apache-2.0
// Files of a process: the one behind a mapping, and one at a path.
#pragma once

#include "base/fd.hpp"
#include "bpf/shared/process.h"
#include "proc/process.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <tuple>

// A program image of a process, as the kernel side numbers them, ordered for maps.

// Where the type is, so that std::map finds them.
inline bool operator==(const image& a, const image& b)
{
    return std::tie(a.pid, a.serial) == std::tie(b.pid, b.serial);
}

inline auto operator<=>(const image& a, const image& b)
{
    return std::tie(a.pid, a.serial) <=> std::tie(b.pid, b.serial);
}

namespace gpusnoop {

using ImageId = ::image;

} // namespace gpusnoop

// Which file the kernel means. One attach per file, however many paths, mounts and containers lead to it.
struct inodes_bpf;

namespace gpusnoop {

struct FileId {
    uint64_t kernel_inode = 0; // 0 where the kernel does not say; device and inode are stat()'s then
    uint64_t device = 0;       // of the kernel's super block, major << 20 | minor
    uint64_t inode = 0;
    uint64_t file_system = 0; // its magic number (linux/magic.h); 0 where the kernel does not say
    auto operator<=>(const FileId&) const = default;
};

// Asks the kernel, by looking at a mapping of the file through a BPF iterator (5.12).
class FileIds {
public:
    FileIds(); // asks for nothing yet
    ~FileIds();
    FileIds(const FileIds&) = delete;
    FileIds& operator=(const FileIds&) = delete;

    // Of the file that a process has mapped at this address, or else of the one behind the descriptor, which need not
    // be open for reading (O_PATH).
    FileId find(int fd, pid_t mapper, uint64_t address);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null where the kernel has none
    bool started_ = false;
};

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
