// SPDX-License-Identifier: Apache-2.0
// Symbol lookup for user stacks. It reads only the process's own files, opened through the process: no host paths, no
// separate debug files, no network. The process controls these files and may make their reader hang, run out of memory
// or misbehave, so the lookup runs in a sandboxed helper (reader/helper.hpp). StackNames is its client.
#pragma once

#include "names/name_messages.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

class SymbolFile; // the symbols of one file, shared by all processes that map it

class UserSymbols {
public:
    UserSymbols();
    ~UserSymbols();
    UserSymbols(const UserSymbols&) = delete;
    UserSymbols& operator=(const UserSymbols&) = delete;

    static constexpr uint64_t memory_bytes = 256 << 20; // memory limit of the sandbox

    // The helper's main loop: answers questions until the process that started it exits.
    void serve(Helper::Task& task);

    // All addresses but the innermost are return addresses, so the call before each of them is looked up. The text of a
    // frame is empty if there is no code at the address, and "0x1234 (JIT)" if the code is not in a file. If there is
    // no symbol, the text is "libfoo.so+0x1234"; the number is an ELF virtual address, or a file offset if the file
    // cannot be opened or is not an ELF file. After the process has exited, only mappings and files that were read
    // before are used. Does not throw; if memory runs out, the answer has fewer frames.
    StackAnswer answer(const StackQuestion& question);

private:
    struct Image {
        std::vector<Mapping> mappings;   // sorted by start
        std::vector<Mapping> anonymous;  // mappings of code that is not in a file
        std::vector<uint64_t> auxiliary; // the auxiliary vector; if it changes, the process has called exec
        std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const SymbolFile>> files; // by device and inode
        std::optional<std::chrono::steady_clock::time_point> refreshed;
        uint64_t generation = 0; // number that identifies the current version of `mappings`
        uint64_t used = 0;       // value of uses_ when the image was last used
    };

    struct Place {
        const Mapping* mapping = nullptr;
        uint64_t address = 0;    // ELF virtual address; file offset if the file is not a usable ELF file
        std::string_view symbol; // mangled name of the symbol that contains the address; empty: none
        uint64_t symbol_start = 0;
    };

    Image& image_of(const ImageId& id);
    StackAnswer::Frame frame(pid_t pid, Image& image, uint64_t address, bool innermost);
    Place locate(pid_t pid, Image& image, uint64_t address);
    std::shared_ptr<const SymbolFile> open(pid_t pid, const Mapping& mapping);
    bool refresh(pid_t pid, Image& image);

    std::map<ImageId, Image> images_;
    uint64_t uses_ = 0; // number of image_of() calls; used to evict the least recently used image
    uint64_t generations_;
    Helper::Task* task_ = nullptr; // null outside of serve()
    std::map<std::array<int64_t, 4>, std::weak_ptr<const SymbolFile>>
        files_; // by device, inode, and time of last change
};

} // namespace gpusnoop
