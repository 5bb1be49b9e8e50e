// SPDX-License-Identifier: Apache-2.0
// arm64 (A64): arguments are in x0 to x7. Each instruction is a word, so masks tell what a decoder would.
#include "instructions/decoder.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop {
namespace {

constexpr size_t word_bytes = 4;

struct Pattern {
    uint32_t mask, value;
    constexpr bool matches(uint32_t word) const { return (word & mask) == value; }
};

constexpr Pattern adrp{0x9f000000, 0x90000000}, adr{0x9f000000, 0x10000000};
constexpr Pattern add_immediate{0xff800000, 0x91000000}; // of 64 bits
constexpr Pattern move{0xffe0ffe0, 0xaa0003e0}, move_low{0xffe0ffe0, 0x2a0003e0};
constexpr Pattern movz{0x7f800000, 0x52800000}, movn{0x7f800000, 0x12800000}, movk{0x7f800000, 0x72800000};
constexpr Pattern load{0xffc00000, 0xf9400000}; // of 64 bits, behind a register
constexpr Pattern memory{0x0a000000, 0x08000000};
constexpr Pattern load_pair{0x7e400000, 0x28400000};
constexpr Pattern store_pair{0x3a400000, 0x28000000}, store{0x3bc00000, 0x39000000}, store_near{0x3bc00000, 0x38000000};
constexpr Pattern bl{0xfc000000, 0x94000000}, blr{0xfffffc1f, 0xd63f0000}, br{0xfffffc1f, 0xd61f0000};
constexpr Pattern compare{0x7f20001f, 0x6b00001f}; // subs with a register, of which nothing is kept
constexpr Pattern bti{0xffffff3f, 0xd503241f};
// What straight code ends with: b, b.cond, cbz and cbnz, tbz and tbnz, ret.
constexpr Pattern ends[] = {
    {0xfc000000, 0x14000000}, {0xff000000, 0x54000000}, {0x7e000000, 0x34000000}, {0x7e000000, 0x36000000}, br,
    {0xfffffc1f, 0xd65f0000}};
constexpr Pattern branch_on_condition = ends[1];

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

// Of adr and adrp.
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

// The words of code, which may begin or end within one.
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

// What the registers hold, as far as that is known without running the code. x31 is zero, or the stack pointer, of
// which nothing is known.
class Registers {
public:
    const Argument& operator[](size_t number) const { return values_[number]; }

    void follow(uint32_t word, uint64_t at)
    {
        if (adrp.matches(word) || adr.matches(word)) {
            know(rd(word), address_of(word, at));
        } else if (add_immediate.matches(word)) {
            const Argument& base = values_[rn(word)];
            set(rd(word), base.kind == Argument::constant ? constant(base.value + added(word)) : Argument());
        } else if (move.matches(word)) {
            set(rd(word), rm(word) == 31 ? constant(0) : values_[rm(word)]);
        } else if (move_low.matches(word)) {
            const Argument from = rm(word) == 31 ? constant(0) : values_[rm(word)];
            set(rd(word), from.kind == Argument::constant ? constant(static_cast<uint32_t>(from.value)) : Argument());
        } else if (movz.matches(word) || movn.matches(word) || movk.matches(word)) {
            move_immediate(word);
        } else if (load.matches(word)) {
            const Argument& base = values_[rn(word)];
            set(rd(word), base.kind == Argument::constant ? Argument{Argument::loaded, base.value + loaded_from(word)}
                                                          : Argument());
        } else if (memory.matches(word)) {
            access_memory(word);
        } else if (bl.matches(word) || blr.matches(word)) {
            for (size_t number = 0; number <= 18; number++)
                forget(number);
        } else {
            forget(rd(word));
        }
    }

private:
    static Argument constant(uint64_t value) { return {Argument::constant, value}; }
    void know(size_t number, uint64_t value) { set(number, constant(value)); }
    void forget(size_t number) { values_[number] = {}; }
    void set(size_t number, Argument value)
    {
        if (number != 31)
            values_[number] = value;
    }

    void move_immediate(uint32_t word)
    {
        const unsigned shift = (word >> 21 & 3) * 16;
        const uint64_t immediate = uint64_t{word >> 5 & 0xffff} << shift;
        const Argument before = values_[rd(word)];
        uint64_t value = movn.matches(word) ? ~immediate : immediate;
        if (movk.matches(word)) {
            if (before.kind != Argument::constant)
                return forget(rd(word));
            value = (before.value & ~(uint64_t{0xffff} << shift)) | immediate;
        }
        know(rd(word), word >> 31 ? value : static_cast<uint32_t>(value));
    }

    // Loads and stores but those of one known pointer. A vector's number is no general register's.
    void access_memory(uint32_t word)
    {
        const bool vector = word & 1 << 26;
        const bool stores = store_pair.matches(word) || store.matches(word) || store_near.matches(word);
        if (!stores && !vector) {
            forget(rd(word));
            if (load_pair.matches(word))
                forget(word >> 10 & 31);
        }
        // Before or behind the access the base may move.
        const bool pair = (word >> 27 & 7) == 5,
                   moves_base = pair ? word >> 23 & 1 : (word >> 24 & 3) == 0 && word >> 10 & 1;
        if (moves_base)
            forget(rn(word));
        // Exclusive stores write whether they have stored.
        if ((word & 0x3f000000) == 0x08000000)
            forget(rm(word));
    }

    std::array<Argument, 32> values_{};
};

bool ends_straight_code(uint32_t word)
{
    return std::ranges::any_of(ends, [&](const Pattern& end) { return end.matches(word); });
}

uint64_t call_target(uint32_t word, uint64_t at)
{
    return at + (sign_extended(word & 0x3ffffff, 26) << 2);
}

class Arm64 : public Decoder {
public:
    void branches(const Code& code, const std::function<void(const Branch&)>& found) const override;
    void minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const override;
    void addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const override;
    std::array<uint64_t, 3> stub_entries(uint64_t jump, std::span<const uint8_t> before) const override;
    std::optional<Arguments> arguments(const Code& code) const override;
    std::optional<Branch> first_call(const Code& code) const override;
    std::optional<Branch> thunk_jump(const Code& code) const override;
    // HIP's tables and paths, and where NCCL has what identifies a communicator, are not read on this machine.
    std::optional<Dispatch> dispatch(const Code&) const override { return std::nullopt; }
    std::vector<Filled> filled(const Code&) const override { return {}; }
    std::optional<uint32_t> returned_field(const Code&) const override { return std::nullopt; }
    std::optional<uint32_t> returned_constant(const Code&) const override { return std::nullopt; }
    std::optional<Path> path(const Code&, const CodeAt&) const override { return std::nullopt; }
    // A probe never moves: all that matters is simulated in the first place, or has no better one behind it.
    size_t harmless(std::span<const uint8_t>) const override { return 0; }
};

// adrp xA; ldr xB, [xA, #O]; then at most an add, of what only the linker's resolver wants; br or blr xB.
void Arm64::branches(const Code& code, const std::function<void(const Branch&)>& found) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint64_t at = words.address(i);
        if (bl.matches(words[i]))
            found({Branch::call, at, at + word_bytes, call_target(words[i], at)});
        if (!adrp.matches(words[i]) || i + 2 >= words.size() || !load.matches(words[i + 1]) ||
            rn(words[i + 1]) != rd(words[i]))
            continue;
        const size_t pointer = rd(words[i + 1]);
        size_t jump = i + 2;
        if (add_immediate.matches(words[jump]) && rd(words[jump]) != pointer && jump + 1 < words.size())
            jump++;
        const bool jumps = br.matches(words[jump]);
        if ((!jumps && !blr.matches(words[jump])) || rn(words[jump]) != pointer)
            continue;
        found({jumps ? Branch::jump_through : Branch::call_through, jumps ? at : words.address(jump),
               words.address(jump + 1), address_of(words[i], at) + loaded_from(words[i + 1])});
    }
}

void Arm64::minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++)
        if ((words[i] & 0x7fffffff) == 0x12800004) // mov w4 or x4, #-1
            found(words.address(i));
}

void Arm64::addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const
{
    constexpr size_t soon = 8; // words from the page to what is added to it
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        if (!adrp.matches(words[i]))
            continue;
        for (size_t j = i + 1; j < std::min(i + soon, words.size()); j++)
            if (add_immediate.matches(words[j]) && rn(words[j]) == rd(words[i])) {
                found(words.address(i), address_of(words[i], words.address(i)) + added(words[j]));
                break;
            }
    }
}

std::array<uint64_t, 3> Arm64::stub_entries(uint64_t jump, std::span<const uint8_t> before) const
{
    uint32_t marks = 0; // a target of branches
    if (before.size() >= word_bytes)
        std::memcpy(&marks, before.last(word_bytes).data(), word_bytes);
    return {jump, jump, bti.matches(marks) ? jump - word_bytes : jump};
}

std::optional<Decoder::Arguments> Arm64::arguments(const Code& code) const
{
    const Words words(code);
    if (code.address % word_bytes || code.bytes.size() % word_bytes)
        return std::nullopt;
    Registers state;
    for (size_t i = 0; i < words.size(); i++)
        state.follow(words[i], words.address(i));
    Arguments known;
    for (size_t i = 0; i < arguments_known; i++)
        known[i] = state[i];
    return known;
}

std::optional<Branch> Arm64::first_call(const Code& code) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint64_t at = words.address(i);
        if (bl.matches(words[i]))
            return Branch{Branch::call, at, at + word_bytes, call_target(words[i], at)};
        if (blr.matches(words[i]) || ends_straight_code(words[i]))
            return std::nullopt;
    }
    return std::nullopt;
}

// adrp; mov; movk; ldr; cmp; b.eq; adrp; ldr; mov; br, in one order or another.
std::optional<Branch> Arm64::thunk_jump(const Code& code) const
{
    const Words words(code);
    Registers state;
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        const uint64_t at = words.address(i);
        if (br.matches(word)) {
            const Argument& to = state[rn(word)];
            if (to.kind != Argument::loaded)
                return std::nullopt;
            return Branch{Branch::jump_through, at, at + word_bytes, to.value};
        }
        if (blr.matches(word) || bl.matches(word) || (ends_straight_code(word) && !branch_on_condition.matches(word)) ||
            (memory.matches(word) && (store_pair.matches(word) || store.matches(word) || store_near.matches(word))))
            return std::nullopt;
        if (!compare.matches(word) && !branch_on_condition.matches(word) && !bti.matches(word))
            state.follow(word, at);
    }
    return std::nullopt;
}

} // namespace

const Decoder& arm64_decoder()
{
    static const Arm64 decoder;
    return decoder;
}

} // namespace gpusnoop
