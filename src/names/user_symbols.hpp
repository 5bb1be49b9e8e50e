// SPDX-License-Identifier: Apache-2.0
// Addresses of a process' user stack -> "symbol+0x1f (libfoo.so)". Only the process' own files are asked, each opened
// through the process: no path of the host, no separate debug files, no network. They may be made to hang, to grow, or
// to attack their reader: so this is a helper's work (reader/helper.hpp), which StackNames asks.
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

    static constexpr uint64_t memory_bytes = 256 << 20; // of its sandbox

    // A helper's whole life: answers questions until its owner has gone.
    void serve(Helper::Task& task);

    // Every address but the innermost is a return address, so the call in front of it is looked up. One that leads to
    // no code has no text; one to code of no file is "0x...", one in a file that has no symbol there is
    // "libfoo.so+0x1234" (the ELF virtual address; the file offset where the file is no ELF file or cannot be opened).
    // Works while the process lives; later, the mappings and files seen until then still answer. Throws nothing: out of
    // memory, there are fewer.
    StackAnswer answer(const StackQuestion& question);

private:
    struct Image {
        std::vector<Mapping> mappings;   // by start
        std::vector<Mapping> anonymous;  // code of no file
        std::vector<uint64_t> auxiliary; // the auxiliary vector: another one in another program
        std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const SymbolFile>> files; // by device and inode
        std::optional<std::chrono::steady_clock::time_point> refreshed;
        uint64_t generation = 0; // of the mappings; no two are alike
        uint64_t used = 0;
    };

    struct Place {
        const Mapping* mapping = nullptr;
        uint64_t address = 0;    // in the file
        std::string_view symbol; // around it, mangled; empty where there is none
        uint64_t symbol_start = 0;
    };

    Image& image_of(const ImageId& id);
    StackAnswer::Frame frame(pid_t pid, Image& image, uint64_t address, bool innermost);
    Place locate(pid_t pid, Image& image, uint64_t address);
    std::shared_ptr<const SymbolFile> open(pid_t pid, const Mapping& mapping);
    bool refresh(pid_t pid, Image& image);

    std::map<ImageId, Image> images_;
    uint64_t uses_ = 0;
    uint64_t generations_;
    Helper::Task* task_ = nullptr; // while it serves
    std::map<std::array<int64_t, 4>, std::weak_ptr<const SymbolFile>>
        files_; // by device, inode, and when it last changed
};

} // namespace gpusnoop
