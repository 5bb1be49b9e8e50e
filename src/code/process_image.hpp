// SPDX-License-Identifier: Apache-2.0
// The memory of a process as its stacks see it: words, and the files that its code is from.
#pragma once

#include "code/call_frames.hpp"
#include "code/elf.hpp"
#include "proc/process.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// A file with code, opened once for all processes that map it.
struct Module {
    explicit Module(Fd file) : elf(std::move(file)), frames(elf) {}
    Elf elf;
    CallFrames frames;
};

class Modules {
public:
    Modules();

    // Null where it cannot be opened, or is no ELF file. The vdso is this process' own: all have the same.
    std::shared_ptr<const Module> of(pid_t pid, const Mapping& mapping);

    // So many that those which are not used any more should be closed.
    bool full() const;
    void forget() { known_.clear(); }

private:
    // By device and inode; another file may have the number after the first one has gone, but nobody maps that.
    std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const Module>> known_;
    std::shared_ptr<const Module> vdso_;
};

class ProcessImage {
public:
    ProcessImage(pid_t pid, Modules& modules);

    // Where a piece of code is.
    struct Code {
        const Mapping* mapping = nullptr;     // executable
        std::shared_ptr<const Module> module; // null: of no file, or of one that says nothing
        uint64_t bias = 0;                    // from the file's own numbering to the process'
    };
    // nullopt where nothing executable is mapped.
    std::optional<Code> code_at(uint64_t address);

    // From here on, memory is what was copied from this address on, and nothing else.
    void use_copy(uint64_t address, std::string_view bytes);
    bool read_past_copy() const { return asked_beyond_; } // the end of it

    bool is_executable(uint64_t address) const { return find(address) != nullptr; }

    // Of the memory as it is: a page is read once.
    std::optional<uint64_t> word(uint64_t address);

    // Where a function returns to while a return probe waits for it. slot: as thread_registers has it.
    void replace_return(uint64_t slot, uint64_t address)
    {
        put_.insert_or_assign(slot + FrameRegisters::return_pops, address);
    }
    // Where the function returns to that leaves the stack pointer there, by what was found in its place: without the
    // signature that it may have.
    std::optional<uint64_t> return_address(uint64_t stack, std::optional<uint64_t> found) const;

    bool read(uint64_t address, void* to, size_t size) const { return read_memory(pid_, address, to, size); }

    // Of code, by address.
    const std::vector<Mapping>& mappings() const { return mappings_; }

private:
    static constexpr uint64_t page_size = 4096;
    using Page = std::array<uint64_t, page_size / sizeof(uint64_t)>;

    const Mapping* find(uint64_t address) const;

    pid_t pid_;
    Modules& modules_;
    std::vector<Mapping> mappings_;
    std::map<uint64_t, std::optional<Page>> pages_;
    std::map<uint64_t, uint64_t> put_; // by the stack pointer behind the return
    std::optional<uint64_t> copied_;
    std::vector<uint64_t> copy_;
    bool asked_beyond_ = false;
};

} // namespace gpusnoop
