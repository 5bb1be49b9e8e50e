// SPDX-License-Identifier: Apache-2.0
// What a file says about how to get from a function to its caller (.eh_frame), in which compilers say it of all their
// code. libdw reads it; the file belongs to the traced process and may be malformed on purpose.
#pragma once

#include "code/elf.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

struct Dwarf_CFI_s; // of libdw

namespace gpusnoop {

// Registers by their numbers in DWARF: those that calls preserve, the stack pointer, and the address at which a
// function goes on; and which one of them tells where its caller does.
struct FrameRegisters {
#if defined(__aarch64__) // aadwarf64, 4.1; ip is not among its numbers
    static constexpr size_t return_address = 30, sp = 31, ip = 33, count = 34;
    static constexpr size_t return_pops = 0;     // from the stack pointer at a function's begin to its caller's
    static constexpr bool returns_signed = true; // return addresses may be (FEAT_PAuth)
    static constexpr std::array<size_t, 12> kept = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, return_address};
#else // psABI of x86-64, figure 3.36
    static constexpr size_t bx = 3, bp = 6, sp = 7, r12 = 12, r13 = 13, r14 = 14, r15 = 15, ip = 16, count = 17;
    static constexpr size_t return_address = ip, return_pops = 8;
    static constexpr bool returns_signed = false;
    static constexpr std::array<size_t, 6> kept = {bp, bx, r12, r13, r14, r15};
#endif
    std::array<std::optional<uint64_t>, count> values{}; // those that are known

    std::optional<uint64_t>& operator[](size_t number)
    {
        return values[number];
    }
    const std::optional<uint64_t>& operator[](size_t number) const
    {
        return values[number];
    }
};

// How the registers of the caller are found. Where return_address is lost, there is none: a thread begins there.
struct FrameRule {
    size_t base_register = FrameRegisters::sp; // + base_offset: the stack pointer of the caller
    int64_t base_offset = 0;
    struct Saved {
        enum Kind : uint8_t { unchanged, lost, on_stack } kind = unchanged;
        int64_t offset = 0; // from the caller's stack pointer
    };
    std::array<Saved, FrameRegisters::count> registers{};
};

class CallFrames {
public:
    explicit CallFrames(const Elf& elf); // which is needed for as long

    // Where the function begins that this address is in; both in the file's own numbering. nullopt where the file does
    // not say.
    std::optional<uint64_t> function_start(uint64_t address) const;

    // At this address; nullopt where the file does not say, or in words that compilers do not use for functions.
    std::optional<FrameRule> rule(uint64_t address) const;

private:
    // The table that a search begins with: one row for each function, by address.
    struct SearchRow {
        int32_t start; // from the table's own address
        int32_t entry;
    };
    struct End {
        void operator()(Dwarf_CFI_s* frames) const;
    };
    void read_search_table(const Elf& elf);

    std::unique_ptr<Dwarf_CFI_s, End> frames_;
    uint64_t table_address_ = 0;
    std::vector<SearchRow> table_;
};

} // namespace gpusnoop
