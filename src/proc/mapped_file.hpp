// SPDX-License-Identifier: Apache-2.0
// Files of a process: the file behind a mapping, and the file that a path leads to in the process's root.
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

// Comparison of struct image, so that it can be the key of a map. Defined in the global namespace, like the type, so
// that std::map finds the operators.
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

struct inodes_bpf;

namespace gpusnoop {

// Identity of a file in the kernel, the same for all paths, mounts and containers that lead to it.
struct FileId {
    uint64_t kernel_inode = 0; // 0 if unknown; device and inode then come from stat()
    uint64_t device = 0;       // device number in the kernel's super block: major << 20 | minor
    uint64_t inode = 0;
    uint64_t file_system = 0; // magic number of the file system (linux/magic.h); 0 if unknown
    auto operator<=>(const FileId&) const = default;
};

// Reads file identities through a BPF iterator over the mappings of a process (Linux 5.12).
class FileIds {
public:
    FileIds(); // loads nothing yet
    ~FileIds();
    FileIds(const FileIds&) = delete;
    FileIds& operator=(const FileIds&) = delete;

    // Returns the identity of the file that the process has mapped at this address. If the kernel lacks the BPF
    // iterator, the identity comes from stat() of fd, which may be opened with O_PATH.
    FileId find(int fd, pid_t mapper, uint64_t address);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null if the kernel lacks the iterator
    bool started_ = false;
};

// Removes the " (deleted)" that /proc appends to the path of a deleted file. Returns false if the path has none.
bool cut_deleted(std::string_view& path);

// Finds the file behind a mapping of a process through map_files. If that fails, resolves the path in the process's
// root directory, and accepts the file only if its inode is that of the mapping. If neither works, returns nullopt and
// sets errno.
std::optional<FoundFile> find_mapped(pid_t pid, const Mapping& mapping);

// Resolves the path in the process's root directory, and returns the regular file to which it leads, never a file
// outside that root. If there is none, returns nullopt and sets errno.
std::optional<FoundFile> find_in_root_of(pid_t pid, const std::string& path);

// Opens the file of find_mapped() for reading. On failure, returns an empty Fd and sets errno.
Fd open_mapped(pid_t pid, const Mapping& mapping);

// True if the path, resolved in the process's root directory, leads to the file with this inode.
bool leads_to(pid_t pid, const std::string& path, uint64_t inode);

} // namespace gpusnoop
