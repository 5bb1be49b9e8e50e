// SPDX-License-Identifier: Apache-2.0
// As much of machine code as it takes to read a registration (calls, and what their arguments are) and to place a probe
// a few instructions into a function. One file for each instruction set; the code belongs to a traced process and may
// be anything.
#pragma once

#include <array>
#include <cstdint>
#include <elf.h>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop {

// What the machine that this runs on means in ELF files. Programs of others are not traced.
struct ElfMachine {
    const char* name;
    uint16_t number;
    // Relocations: the address of a symbol, as a pointer to call it through, and as any other; the same, to which a
    // number is added; an address in the file itself.
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

// Bytes of a file, and their address in its own numbering.
struct Code {
    std::span<const uint8_t> bytes;
    uint64_t address = 0;
};

// What an argument is where a call is made.
struct Argument {
    enum Kind : uint8_t { unknown, constant, loaded } kind = unknown;
    uint64_t value = 0; // of a constant; else the address that it is loaded from

    bool operator==(const Argument&) const = default;
};

struct Branch {
    enum Kind : uint8_t { call, call_through, jump_through } kind = call;
    uint64_t address = 0;
    uint64_t next = 0;   // behind it
    uint64_t target = 0; // of a call; else where the pointer to it lies

    bool operator==(const Branch&) const = default;
};

// What a function does that hands its caller's arguments on to another one, and is no longer there when that begins:
// the other one is in a table, which a third function returns.
struct Dispatch {
    uint64_t table_of = 0; // the function that returns the table
    uint32_t slot = 0;     // bytes from the beginning of the table to the pointer
    // Bits: which of the argument registers (six, or eight) are as they were, and of which that is so for the lower 32
    // bits.
    uint8_t whole = 0, low = 0;

    bool operator==(const Dispatch&) const = default;
};

// A pointer in such a table, and where.
struct Filled {
    uint64_t slot = 0;
    Argument pointer;

    bool operator==(const Filled&) const = default;
};

// What leads from a pointer to what it is about: the offset at which the next pointer is, of each on the way.
// {0x88, 0x28}: what is at 0x28 of what the pointer at 0x88 points to.
using Path = std::vector<uint32_t>;

// The code at an address, as much as a small function may have; empty: there is none.
using CodeAt = std::function<std::vector<uint8_t>(uint64_t address)>;

class Decoder {
public:
    static constexpr size_t arguments_known = 5; // the first integers and pointers
    using Arguments = std::array<Argument, arguments_known>;

    // Longer than any instruction: pieces of code that overlap by as much hide none.
    static constexpr size_t overlap = 16;

    virtual ~Decoder() = default;

    // Found by their bytes alone, which takes no decoding of all the code: what only looks like a branch is among them.
    virtual void branches(const Code& code, const std::function<void(const Branch&)>& found) const = 0;

    // The same for what sets an argument to -1 (of 32 bits), and for what puts the address of something into a
    // register: where the instruction begins, and the address.
    virtual void minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const = 0;
    virtual void addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const = 0;

    // Where a call stub of the linker (PLT) may begin whose jump is at this address, the jump among them. before: the
    // code in front of it.
    virtual std::array<uint64_t, 3> stub_entries(uint64_t jump, std::span<const uint8_t> before) const = 0;

    // What the arguments are behind this code; nullopt where its instructions do not end where it ends.
    virtual std::optional<Arguments> arguments(const Code& code) const = 0;

    // The first call in this code, if only straight code is in front of it.
    virtual std::optional<Branch> first_call(const Code& code) const = 0;

    // The jump through a pointer that a function ends with which does nothing but check whether it may.
    virtual std::optional<Branch> thunk_jump(const Code& code) const = 0;

    // What a function hands on, whose instructions all serve that; nullopt where one does anything else.
    virtual std::optional<Dispatch> dispatch(const Code& code) const = 0;
    // What a function writes into the table that it returns, when it is called first. Of two pointers for one place,
    // none is told. Empty where it returns anything else.
    virtual std::vector<Filled> filled(const Code& code) const = 0;

    // Where the 32 bits are in a structure that a function hands out through a pointer; nullopt where there is no such
    // field, or more than one.
    virtual std::optional<uint32_t> returned_field(const Code& code) const = 0;
    // The same of a number that is always the same one.
    virtual std::optional<uint32_t> returned_constant(const Code& code) const = 0;

    // The way from a function's first argument to the pointer that it returns, where its code, and that of what it
    // calls, does nothing but follow that; for a null pointer it may return anything.
    virtual std::optional<Path> path(const Code& code, const CodeAt& code_at) const = 0;

    // Length in bytes of the first instruction, where a probe may as well sit behind it: control goes on there, no
    // memory is written, and what changes carries no argument. 0 where it is any other or not all there.
    virtual size_t skippable_length(std::span<const uint8_t> code) const = 0;
};

const Decoder& x86_64_decoder(); // not there on other machines: Zydis decodes
const Decoder& arm64_decoder();
const Decoder& host_decoder(); // that of the machine that this runs on

} // namespace gpusnoop
