// SPDX-License-Identifier: Apache-2.0
// Addresses of a process' user stack -> "symbol+0x1f (libfoo.so)". Only the process' own files are asked, each opened
// through the process: no path of the host, no separate debug files, no network.
#pragma once

#include "names/kernel_names.hpp"
#include "proc/process.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

    // Innermost first: every other address is a return address, so the call in front of it is looked up. An address in
    // no file is "0x...", one in a file that has no symbol there is "libfoo.so+0x1234" (the ELF virtual address; the
    // file offset where the file is no ELF file or cannot be opened). Names come as the process has them: show them
    // with printable(). Works while the process lives; later, the mappings and files seen until then still answer.
    // Throws nothing: out of memory, the stack is shorter.
    std::vector<std::string> frames(const ImageId& image, std::span<const uint64_t> addresses);

    void forget(const ImageId& image);

private:
    struct Image {
        std::vector<Mapping> mappings;   // by start
        std::vector<uint64_t> auxiliary; // the auxiliary vector: another one in another program
        std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const SymbolFile>> files; // by device and inode
        std::map<std::pair<uint64_t, bool>, std::string> strings; // by address and whether it is the innermost
        std::optional<std::chrono::steady_clock::time_point> refreshed;
        uint64_t used = 0;
    };

    struct Place {
        const Mapping* mapping = nullptr;
        uint64_t address = 0;    // in the file
        std::string_view symbol; // around it, mangled; empty where there is none
        uint64_t symbol_start = 0;
    };

    Image& image_of(const ImageId& id);
    std::string frame(pid_t pid, Image& image, uint64_t address, bool innermost);
    Place locate(pid_t pid, Image& image, uint64_t address);
    std::shared_ptr<const SymbolFile> open(pid_t pid, const Mapping& mapping);
    static bool refresh(pid_t pid, Image& image);

    std::map<ImageId, Image> images_;
    uint64_t uses_ = 0;
    std::map<std::array<int64_t, 4>, std::weak_ptr<const SymbolFile>>
        files_; // by device, inode, and when it last changed
};

} // namespace gpusnoop
