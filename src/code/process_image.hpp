// SPDX-License-Identifier: Apache-2.0
// Memory and code of a process, for unwinding its stacks.
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

// An ELF file, opened once for all processes that map it.
struct Module {
    explicit Module(Fd file) : elf(std::move(file)), frames(elf) {}
    Elf elf;
    CallFrames frames;
};

class Modules {
public:
    Modules();

    // Returns null if the file cannot be opened or is not an ELF file. For the vdso, which is the same in all
    // processes, the vdso of this process is used.
    std::shared_ptr<const Module> of(pid_t pid, const Mapping& mapping);

    // True if forget() should be called to close files.
    bool full() const;
    void forget() { known_.clear(); }

private:
    // Modules by device and inode number. A module keeps its file open, so that the inode number is not reused.
    std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const Module>> known_;
    std::shared_ptr<const Module> vdso_;
};

class ProcessImage {
public:
    ProcessImage(pid_t pid, Modules& modules);

    struct Code {
        const Mapping* mapping = nullptr;     // the executable mapping that contains the address
        std::shared_ptr<const Module> module; // null if the mapping has no file or the file cannot be used
        uint64_t bias = 0;                    // process address minus ELF virtual address
    };
    // Returns nullopt if no executable mapping contains the address.
    std::optional<Code> code_at(uint64_t address);

    // After this call, word() reads only this copy of the memory at `address`.
    void use_copy(uint64_t address, std::string_view bytes);
    bool read_past_copy() const { return asked_beyond_; } // true if word() failed past the copy's end

    bool is_executable(uint64_t address) const { return find(address) != nullptr; }

    // Reads an aligned word from the process's memory or, after use_copy(), from the copy. nullopt if unreadable.
    // Caches pages.
    std::optional<uint64_t> word(uint64_t address);

    // Stores the real return address, which a pending return probe has replaced on the stack. slot: as in
    // replaced_return (bpf/shared/stack.h).
    void replace_return(uint64_t slot, uint64_t address)
    {
        replaced_returns_.insert_or_assign(slot + FrameRegisters::return_pops, address);
    }
    // Returns the real return address of a function. stack: the stack pointer after the function has returned. found:
    // the return address on the stack, which may be a return probe's trampoline or carry a signature (arm64).
    std::optional<uint64_t> return_address(uint64_t stack, std::optional<uint64_t> found) const;

    bool read(uint64_t address, void* to, size_t size) const { return read_memory(pid_, address, to, size); }

    // Executable mappings, sorted by address.
    const std::vector<Mapping>& mappings() const { return mappings_; }

private:
    static constexpr uint64_t page_size = 4096;
    using Page = std::array<uint64_t, page_size / sizeof(uint64_t)>;

    const Mapping* find(uint64_t address) const;

    pid_t pid_;
    Modules& modules_;
    std::vector<Mapping> mappings_;
    std::map<uint64_t, std::optional<Page>> pages_;
    std::map<uint64_t, uint64_t> replaced_returns_; // stack pointer after the return -> real return address
    std::optional<uint64_t> copy_address_;
    std::vector<uint64_t> copy_;
    bool asked_beyond_ = false;
};

} // namespace gpusnoop
