// SPDX-License-Identifier: Apache-2.0
// Which file the kernel means. One attach per file, however many paths, mounts and containers lead to it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <sys/types.h>

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
    FileId of(int fd, pid_t mapper, uint64_t address);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null where the kernel has none
    bool begun_ = false;
};

} // namespace gpusnoop
