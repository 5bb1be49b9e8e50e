// SPDX-License-Identifier: Apache-2.0
// Machine code analysis: finds calls that register CUDA kernels, functions that forward to other functions, and
// addresses for probes. One implementation per instruction set. The code belongs to a traced process and is not
// trusted.
#pragma once

#include <array>
#include <cstdint>
#include <elf.h>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop {

// ELF constants of an architecture. Only files for the host's architecture are traced.
struct ElfMachine {
    const char* name;
    uint16_t number;
    // Relocation types for, respectively, a PLT slot, a GOT entry, symbol plus addend, and load address plus addend.
    uint32_t jump_slot, global, absolute, relative;
};

constexpr ElfMachine x86_64_elf = {"x86-64",          EM_X86_64,   R_X86_64_JUMP_SLOT,
                                   R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_RELATIVE};
constexpr ElfMachine arm64_elf = {"aarch64",          EM_AARCH64,      R_AARCH64_JUMP_SLOT,
                                  R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_RELATIVE};
#if defined(__aarch64__)
constexpr ElfMachine host_elf = arm64_elf, other_elf = x86_64_elf;
#else
constexpr ElfMachine host_elf = x86_64_elf, other_elf = arm64_elf;
#endif

// Code bytes and the ELF virtual address at which they start.
struct Code {
    std::span<const uint8_t> bytes;
    uint64_t address = 0;
};

// Value of an argument, register or word, as far as it is known from the code alone.
struct Argument {
    enum Kind : uint8_t { unknown, constant, loaded } kind = unknown;
    uint64_t value = 0; // the constant, or the address from which the value is loaded

    bool operator==(const Argument&) const = default;
};

struct Branch {
    enum Kind : uint8_t { call, call_through, jump_through } kind = call;
    uint64_t address = 0;
    uint64_t next = 0;   // address of the next instruction
    uint64_t target = 0; // for a call: address of the target; for the other kinds: address of the pointer to the target

    bool operator==(const Branch&) const = default;
};

// Describes a function that forwards its arguments by a tail call. The function loads the address of its target from a
// table that another function returns.
struct Dispatch {
    uint64_t table_of = 0; // address of the function that returns the table
    uint32_t slot = 0;     // byte offset of the pointer in the table
    // Bit masks of the argument registers (six on x86-64, eight on arm64) whose entry value is kept. whole: all 64 bits
    // are kept. low: at least the lower 32 bits are kept.
    uint8_t whole = 0, low = 0;

    bool operator==(const Dispatch&) const = default;
};

// An entry that a function writes into the table of a Dispatch.
struct Filled {
    uint64_t slot = 0; // byte offset in the table
    Argument pointer;

    bool operator==(const Filled&) const = default;
};

// Offsets of a chain of pointer loads. {0x88, 0x28} means: load the pointer at offset 0x88 of an object; it points to a
// second object; load the pointer at offset 0x28 of that object.
using Path = std::vector<uint32_t>;

// Returns the bytes of code at an address, enough to decode a small function. Empty if there is no code.
using CodeAt = std::function<std::vector<uint8_t>(uint64_t address)>;

class Decoder {
public:
    static constexpr size_t arguments_known = 5; // only the first five integer or pointer arguments are tracked
    using Arguments = std::array<Argument, arguments_known>;

    // Overlap of the chunks in a scan. It is longer than any instruction, so each instruction is complete in some
    // chunk.
    static constexpr size_t overlap = 16;

    virtual ~Decoder() = default;

    // Finds branches by byte patterns, without decoding all code. May report bytes that only look like a branch.
    virtual void branches(const Code& code, const std::function<void(const Branch&)>& found) const = 0;

    // The next two functions also search by byte patterns. minus_ones() finds instructions that set the fifth argument
    // to -1 (32 bits), as calls of __cudaRegisterFunction do. addresses() finds instructions that load an address, and
    // calls found(address of the instruction, loaded address).
    virtual void minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const = 0;
    virtual void addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const = 0;

    // Returns the possible start addresses of the PLT stub whose jump is at `jump`, including the jump itself. before:
    // the code before the jump.
    virtual std::array<uint64_t, 3> stub_entries(uint64_t jump, std::span<const uint8_t> before) const = 0;

    // Returns the argument values after this code has run. nullopt if the last instruction is incomplete.
    virtual std::optional<Arguments> arguments(const Code& code) const = 0;

    // Returns the first call in this code, if no branch precedes it.
    virtual std::optional<Branch> first_call(const Code& code) const = 0;

    // Returns the jump at the end of a thunk. A thunk is a function that only jumps through a pointer, possibly after a
    // check. nullopt if the function is not a thunk.
    virtual std::optional<Branch> thunk_jump(const Code& code) const = 0;

    // Describes how the function forwards its arguments. nullopt if it does anything but forward.
    virtual std::optional<Dispatch> dispatch(const Code& code) const = 0;
    // Returns the entries that a function writes into a table on its first call, before it returns the table. Omits
    // slots that are written with two different pointers. Empty if the function does not fill a table.
    virtual std::vector<Filled> filled(const Code& code) const = 0;

    // Returns the offset of the 32-bit structure field that the function returns through a pointer argument. nullopt
    // unless there is exactly one such field.
    virtual std::optional<uint32_t> returned_field(const Code& code) const = 0;
    // Returns the 32-bit constant that the function returns through a pointer argument. nullopt unless there is exactly
    // one such constant.
    virtual std::optional<uint32_t> returned_constant(const Code& code) const = 0;

    // Returns the pointer chain from the first argument to the return value, if the function and its callees do nothing
    // but follow that chain. Assumes that conditional branches are null checks and not taken.
    virtual std::optional<Path> path(const Code& code, const CodeAt& code_at) const = 0;

    // Returns the length in bytes of the first instruction if a probe may be placed after it, that is, if it does not
    // branch, cannot fault, writes no memory, and changes no argument. Otherwise, or if it is incomplete, returns 0.
    virtual size_t skippable_length(std::span<const uint8_t> code) const = 0;
};

const Decoder& x86_64_decoder(); // exists on x86-64 only, because it needs Zydis
const Decoder& arm64_decoder();
const Decoder& host_decoder(); // for the architecture of this machine

} // namespace gpusnoop
