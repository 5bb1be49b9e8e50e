// SPDX-License-Identifier: Apache-2.0
// Patterns and fields of A64 instructions, which are 32-bit words.
#pragma once

#include "code/decoder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace gpusnoop::arm64 {

constexpr size_t word_bytes = 4;
constexpr size_t link = 30, x31 = 31; // x31 means zero or the stack pointer, depending on the instruction
constexpr size_t lost_in_calls = 18;  // calls may change x0 to x18 and the link register

struct Pattern {
    uint32_t mask, value;
    constexpr bool matches(uint32_t word) const { return (word & mask) == value; }
};

constexpr Pattern adrp{0x9f000000, 0x90000000}, adr{0x9f000000, 0x10000000};
constexpr Pattern add_immediate{0xff800000, 0x91000000}, sub_immediate{0xff800000, 0xd1000000}; // 64-bit
constexpr Pattern move{0xffe0ffe0, 0xaa0003e0}, move_low{0xffe0ffe0, 0x2a0003e0};
constexpr Pattern movz{0x7f800000, 0x52800000}, movn{0x7f800000, 0x12800000}, movk{0x7f800000, 0x72800000};
constexpr Pattern load{0xffc00000, 0xf9400000}; // 64-bit, with unsigned offset
constexpr Pattern memory{0x0a000000, 0x08000000};
constexpr Pattern load_pair{0x7e400000, 0x28400000};
constexpr Pattern store_pair{0x3a400000, 0x28000000}, store{0x3bc00000, 0x39000000}, store_near{0x3bc00000, 0x38000000};
constexpr Pattern b{0xfc000000, 0x14000000}, bl{0xfc000000, 0x94000000};
constexpr Pattern blr{0xfffffc1f, 0xd63f0000}, br{0xfffffc1f, 0xd61f0000};
constexpr Pattern ret{0xfffffc1f, 0xd65f0000}, ret_signed{0xfffffbff, 0xd65f0bff}; // retaa, retab
constexpr Pattern branch_on_condition{0xff000000, 0x54000000};
constexpr Pattern branch_on_zero{0x7e000000, 0x34000000}; // cbz, cbnz
constexpr Pattern branch_on_bit{0x7e000000, 0x36000000};  // tbz, tbnz
constexpr Pattern compare{0x7f20001f, 0x6b00001f};        // subs of two registers whose result is discarded
constexpr Pattern bti{0xffffff3f, 0xd503241f}, nop{0xffffffff, 0xd503201f};
constexpr Pattern sign_return{0xffffffff, 0xd503233f}, check_return{0xffffffff, 0xd50323bf}; // paciasp, autiasp
constexpr Pattern read_thread_pointer{0xffffffe0, 0xd53bd040};                               // mrs, tpidr_el0

constexpr size_t rd(uint32_t word)
{
    return word & 31;
}
constexpr size_t rn(uint32_t word)
{
    return word >> 5 & 31;
}
constexpr size_t rm(uint32_t word)
{
    return word >> 16 & 31;
}

constexpr uint64_t sign_extended(uint64_t value, unsigned bits)
{
    const uint64_t sign = uint64_t{1} << (bits - 1);
    return (value ^ sign) - sign;
}

// The address that adr or adrp computes.
constexpr uint64_t address_of(uint32_t word, uint64_t at)
{
    const uint64_t offset = sign_extended((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21);
    return adrp.matches(word) ? (at & ~uint64_t{0xfff}) + (offset << 12) : at + offset;
}

constexpr uint64_t added(uint32_t word)
{
    const uint64_t immediate = word >> 10 & 0xfff;
    return word & 1 << 22 ? immediate << 12 : immediate;
}

constexpr uint64_t loaded_from(uint32_t word)
{
    return uint64_t{word >> 10 & 0xfff} * 8;
}

// The target of b or bl.
constexpr uint64_t call_target(uint32_t word, uint64_t at)
{
    return at + (sign_extended(word & 0x3ffffff, 26) << 2);
}

constexpr bool is_conditional(uint32_t word)
{
    return branch_on_condition.matches(word) || branch_on_zero.matches(word) || branch_on_bit.matches(word);
}

constexpr uint64_t conditional_target(uint32_t word, uint64_t at)
{
    const unsigned bits = branch_on_bit.matches(word) ? 14 : 19;
    return at + (sign_extended(word >> 5 & ((1U << bits) - 1), bits) << 2);
}

// True if execution never continues with the next instruction, which can then be reached only by branches.
constexpr bool goes_elsewhere(uint32_t word)
{
    return b.matches(word) || br.matches(word) || ret.matches(word) || ret_signed.matches(word);
}

// A load or store of one or two general registers of 4 or 8 bytes each, at base + offset.
struct Access {
    bool loads = false;
    unsigned bytes = 8; // size of each register
    size_t count = 1;
    std::array<size_t, 2> numbers{};
    size_t base = 0;
    int64_t offset = 0;
    int64_t before = 0, after = 0; // numbers added to the base register before and after the access
};

constexpr std::optional<Access> access_of(uint32_t word)
{
    Access access{.numbers = {rd(word), word >> 10 & 31}, .base = rn(word)};
    if ((word & 0x7e000000) == 0x28000000 && (word >> 23 & 3)) { // ldp, stp
        access.loads = word & 1 << 22;
        access.bytes = word >> 31 ? 8 : 4;
        access.count = 2;
        const auto number = static_cast<int64_t>(sign_extended(word >> 15 & 0x7f, 7) * access.bytes);
        switch (word >> 23 & 3) {
        case 1:
            access.after = number;
            break;
        case 2:
            access.offset = number;
            break;
        default:
            access.before = number;
        }
        return access;
    }
    access.loads = word & 1 << 22;
    access.bytes = word & 1 << 30 ? 8 : 4;
    if ((word & 0xbf800000) == 0xb9000000) { // ldr, str with unsigned offset
        access.offset = static_cast<int64_t>((word >> 10 & 0xfff) * access.bytes);
        return access;
    }
    if ((word & 0xbfa00000) != 0xb8000000)
        return std::nullopt;
    const auto near = static_cast<int64_t>(sign_extended(word >> 12 & 0x1ff, 9));
    switch (word >> 10 & 3) {
    case 0:
        access.offset = near;
        return access;
    case 1:
        access.after = near;
        return access;
    case 3:
        access.before = near;
        return access;
    default:
        return std::nullopt;
    }
}

// View of code as instruction words. An incomplete word at the start or end of the code is skipped.
class Words {
public:
    explicit Words(const Code& code)
    {
        const size_t skipped = std::min<size_t>(-code.address & (word_bytes - 1), code.bytes.size());
        bytes_ = code.bytes.subspan(skipped);
        address_ = code.address + skipped;
    }
    size_t size() const { return bytes_.size() / word_bytes; }
    uint64_t address(size_t number) const { return address_ + number * word_bytes; }
    uint32_t operator[](size_t number) const
    {
        uint32_t word;
        std::memcpy(&word, &bytes_[number * word_bytes], sizeof(word));
        return word;
    }

private:
    std::span<const uint8_t> bytes_;
    uint64_t address_ = 0;
};

} // namespace gpusnoop::arm64
