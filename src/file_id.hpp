// SPDX-License-Identifier: Apache-2.0
// Which file the kernel means. One attach per file, however many paths, mounts and containers lead to it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>

struct inodes_bpf;

namespace gpusnoop {

struct FileId {
    uint64_t kernel_inode = 0; // 0 where the kernel does not say; device and inode are stat()'s then
    uint64_t device = 0;       // of the kernel's super block, major << 20 | minor
    uint64_t inode = 0;
    auto operator<=>(const FileId&) const = default;
};

// Asks the kernel, by mapping a page of the file and looking at the mapping through a BPF iterator (5.12).
class FileIds {
public:
    FileIds();
    ~FileIds();
    FileIds(const FileIds&) = delete;
    FileIds& operator=(const FileIds&) = delete;

    FileId of(int fd);

private:
    struct Iterator;
    std::unique_ptr<Iterator> iterator_; // null where the kernel has none
};

} // namespace gpusnoop
