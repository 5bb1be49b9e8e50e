// SPDX-License-Identifier: Apache-2.0
// Unwind rules from .eh_frame, which compilers emit for all code. libdw parses them. The file belongs to the traced
// process and may be malformed on purpose.
#pragma once

#include "code/elf.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

struct Dwarf_CFI_s; // a type of libdw

namespace gpusnoop {

// Registers needed for unwinding, indexed by DWARF number.
struct FrameRegisters {
#if defined(__aarch64__) // register numbers from aadwarf64, section 4.1, which has none for the pc; 33 is our choice
    static constexpr size_t return_address = 30, sp = 31, ip = 33, count = 34;
    static constexpr size_t return_pops = 0;     // bytes that a return pops from the stack
    static constexpr bool returns_signed = true; // return addresses may carry a signature (FEAT_PAuth)
    static constexpr std::array<size_t, 12> kept = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, return_address};
#else // register numbers from the x86-64 psABI, figure 3.36
    static constexpr size_t bx = 3, bp = 6, sp = 7, r12 = 12, r13 = 13, r14 = 14, r15 = 15, ip = 16, count = 17;
    static constexpr size_t return_address = ip, return_pops = 8;
    static constexpr bool returns_signed = false;
    static constexpr std::array<size_t, 6> kept = {bp, bx, r12, r13, r14, r15};
#endif
    std::array<std::optional<uint64_t>, count> values{}; // nullopt: unknown

    std::optional<uint64_t>& operator[](size_t number)
    {
        return values[number];
    }
    const std::optional<uint64_t>& operator[](size_t number) const
    {
        return values[number];
    }
};

// Rule for computing the caller's registers. If return_address is `lost`, the frame is the outermost one and has no
// caller.
struct FrameRule {
    // The caller's stack pointer is base_register + base_offset.
    size_t base_register = FrameRegisters::sp;
    int64_t base_offset = 0;
    struct Saved {
        enum Kind : uint8_t { unchanged, lost, on_stack } kind = unchanged;
        int64_t offset = 0; // used if kind is on_stack: offset from the caller's stack pointer
    };
    std::array<Saved, FrameRegisters::count> registers{};
};

class CallFrames {
public:
    explicit CallFrames(const Elf& elf); // elf must outlive this object

    // Returns the start of the function that contains this address. Both are ELF virtual addresses. nullopt if the
    // search table has no function that starts at or before the address.
    std::optional<uint64_t> function_start(uint64_t address) const;

    // Returns the unwind rule at this address. nullopt if there is none, or if it uses DWARF expressions that compilers
    // do not emit for functions.
    std::optional<FrameRule> rule(uint64_t address) const;

private:
    // The binary search table of .eh_frame_hdr: one row per function, sorted by address.
    struct SearchRow {
        int32_t start; // address of the function, relative to the address of the table
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
