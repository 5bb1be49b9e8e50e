// SPDX-License-Identifier: Apache-2.0
// Decoder for x86-64 (System V ABI).
#include "code/registers_x86_64.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop::x86_64 {

namespace {

constexpr std::array<size_t, Decoder::arguments_known> argument_registers = {7, 6, 2, 1, 8}; // rdi, rsi, rdx, rcx, r8

template<class T>
T load(const uint8_t* from)
{
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

// Returns the address of a RIP-relative operand with a signed 32-bit displacement.
uint64_t displaced(uint64_t next, const uint8_t* displacement)
{
    return next + static_cast<uint64_t>(int64_t{load<int32_t>(displacement)});
}

// True for a 32-bit memory operand [register + offset] that is neither on the stack nor thread-local.
bool is_field(const ZydisDecodedOperand& operand)
{
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.size == 32 && number_of(operand.mem.base) &&
           operand.mem.base != ZYDIS_REGISTER_RSP && operand.mem.base != ZYDIS_REGISTER_RBP &&
           operand.mem.index == ZYDIS_REGISTER_NONE && operand.mem.segment != ZYDIS_REGISTER_FS;
}

// True for registers that a function's instructions before the probe may overwrite: the flags, rax, r10 and r11. They
// hold no argument that probes read.
bool is_scratch(ZydisRegister reg)
{
    if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_FLAGS)
        return true;
    const auto number = number_of(reg);
    return number && (*number == 0 || *number == 10 || *number == 11);
}

} // namespace

void X86_64::branches(const Code& code, const std::function<void(const Branch&)>& found) const
{
    constexpr size_t indirect_bytes = 6; // length of a branch through a pointer; a direct call has 5 bytes
    const std::span<const uint8_t> bytes = code.bytes;
    for (size_t i = 0; i + indirect_bytes <= bytes.size(); i++) {
        const uint64_t at = code.address + i;
        if (bytes[i] == 0xe8) {
            found({Branch::call, at, at + 5, displaced(at + 5, &bytes[i + 1])});
        } else if (bytes[i] == 0xff && (bytes[i + 1] == 0x15 || bytes[i + 1] == 0x25)) {
            const auto kind = bytes[i + 1] == 0x15 ? Branch::call_through : Branch::jump_through;
            found({kind, at, at + indirect_bytes, displaced(at + indirect_bytes, &bytes[i + 2])});
        }
    }
}

void X86_64::minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const
{
    constexpr uint8_t mov[] = {0x41, 0xb8, 0xff, 0xff, 0xff, 0xff}; // mov $-1, %r8d
    constexpr uint8_t mov_long[] = {0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff};
    constexpr uint8_t bitwise_or[] = {0x41, 0x83, 0xc8, 0xff}; // or $-1, %r8d
    constexpr uint8_t push_pop[] = {0x6a, 0xff, 0x41, 0x58};   // push $-1; pop %r8
    for (const std::span<const uint8_t> pattern :
         {std::span<const uint8_t>(mov), std::span<const uint8_t>(mov_long), std::span<const uint8_t>(bitwise_or),
          std::span<const uint8_t>(push_pop)}) {
        for (std::span<const uint8_t> rest = code.bytes; !rest.empty();) {
            const void* const hit = memmem(rest.data(), rest.size(), pattern.data(), pattern.size());
            if (!hit)
                break;
            const auto at = static_cast<size_t>(static_cast<const uint8_t*>(hit) - code.bytes.data());
            found(code.address + at);
            rest = code.bytes.subspan(at + 1);
        }
    }
}

void X86_64::addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const
{
    const std::span<const uint8_t> bytes = code.bytes;
    for (size_t i = 0; i + 7 <= bytes.size(); i++) {
        const uint64_t at = code.address + i;
        if ((bytes[i] & 0xfb) == 0x48 && bytes[i + 1] == 0x8d && (bytes[i + 2] & 0xc7) == 0x05)
            found(at, displaced(at + 7, &bytes[i + 3])); // lea X(%rip)
        else if ((bytes[i] & 0xf8) == 0xb8)
            found(at, load<uint32_t>(&bytes[i + 1])); // mov $X, in programs that are not position independent
    }
}

std::array<uint64_t, 3> X86_64::stub_entries(uint64_t jump, std::span<const uint8_t> before) const
{
    constexpr uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    std::array<uint64_t, 3> entries = {jump, jump, jump};
    // The jump may have a bnd prefix, with an endbr64 before it.
    if (!before.empty() && before.back() == 0xf2) {
        before = before.first(before.size() - 1);
        entries[1] = entries[2] = jump - 1;
    }
    if (before.size() >= sizeof(endbr64) && std::ranges::equal(before.last(sizeof(endbr64)), endbr64))
        entries[2] -= sizeof(endbr64);
    return entries;
}

std::optional<Decoder::Arguments> X86_64::arguments(const Code& code) const
{
    Registers state;
    Instruction instruction;
    size_t at = 0;
    while (at < code.bytes.size()) {
        if (!decode(code.bytes.subspan(at), instruction))
            return std::nullopt;
        at += instruction.info.length;
        state.follow(instruction, code.address + at);
    }
    Arguments known;
    for (size_t i = 0; i < arguments_known; i++)
        known[i] = state[argument_registers[i]];
    return known;
}

std::optional<Branch> X86_64::first_call(const Code& code) const
{
    Instruction instruction;
    for (size_t at = 0; at < code.bytes.size() && decode(code.bytes.subspan(at), instruction);) {
        const uint64_t address = code.address + at;
        at += instruction.info.length;
        const ZydisInstructionCategory category = instruction.info.meta.category;
        const ZydisDecodedOperand& first = instruction.operands[0];
        if (category == ZYDIS_CATEGORY_CALL && first.type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return Branch{Branch::call, address, code.address + at, code.address + at + first.imm.value.u};
        if (category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR ||
            category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_RET)
            return std::nullopt;
    }
    return std::nullopt;
}

std::optional<Branch> X86_64::thunk_jump(const Code& code) const
{
    Instruction instruction;
    for (size_t at = 0; at < code.bytes.size() && decode(code.bytes.subspan(at), instruction);) {
        const uint64_t address = code.address + at;
        at += instruction.info.length;
        const uint64_t next = code.address + at;
        const ZydisDecodedOperand& first = instruction.operands[0];
        if (instruction.is(ZYDIS_MNEMONIC_JMP) && is_memory_at_rip(first))
            return Branch{Branch::jump_through, address, next, next + static_cast<uint64_t>(first.mem.disp.value)};
        const ZydisInstructionCategory category = instruction.info.meta.category;
        if (category != ZYDIS_CATEGORY_COND_BR && !instruction.is(ZYDIS_MNEMONIC_CMP) &&
            !instruction.is(ZYDIS_MNEMONIC_ENDBR64))
            return std::nullopt;
    }
    return std::nullopt;
}

std::optional<uint32_t> X86_64::returned_field(const Code& code) const
{
    constexpr size_t max_distance = 3; // maximum number of instructions from the load to the store
    std::optional<uint32_t> found;
    uint32_t field = 0;
    size_t loaded = registers, since = 0;
    Instruction instruction;
    for (size_t at = 0; at < code.bytes.size(); at += instruction.info.length) {
        if (!decode(code.bytes.subspan(at), instruction))
            return std::nullopt;
        const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
        if (++since > max_distance)
            loaded = registers;
        if (!instruction.is(ZYDIS_MNEMONIC_MOV))
            continue;
        if (to.type == ZYDIS_OPERAND_TYPE_REGISTER && is_field(from) && from.mem.disp.value > 0 &&
            from.mem.disp.value <= INT32_MAX) {
            loaded = number_of(to.reg.value).value_or(registers);
            field = static_cast<uint32_t>(from.mem.disp.value);
            since = 0;
        } else if (is_field(to) && to.mem.disp.value == 0 && from.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                   loaded != registers && number_of(from.reg.value) == loaded) {
            if (found && *found != field)
                return std::nullopt;
            found = field;
        }
    }
    return found;
}

std::optional<uint32_t> X86_64::returned_constant(const Code& code) const
{
    std::optional<uint32_t> found;
    Instruction instruction;
    for (size_t at = 0; at < code.bytes.size(); at += instruction.info.length) {
        if (!decode(code.bytes.subspan(at), instruction))
            return std::nullopt;
        const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
        if (!instruction.is(ZYDIS_MNEMONIC_MOV) || !is_field(to) || to.mem.disp.value != 0 ||
            from.type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            continue;
        const auto value = static_cast<uint32_t>(from.imm.value.u);
        if (found && *found != value)
            return std::nullopt;
        found = value;
    }
    return found;
}

size_t X86_64::skippable_length(std::span<const uint8_t> code) const
{
    Instruction instruction;
    if (!decode(code, instruction))
        return 0;
    switch (instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_LEA:
        break;
    default:
        return 0;
    }
    const auto is_unsafe = [](const ZydisDecodedOperand& operand) {
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && !is_memory_at_rip(operand))
            return true; // the instruction may fault before the probe is reached
        if (!(operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            return false;
        return operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_scratch(operand.reg.value);
    };
    const std::span operands(instruction.operands, instruction.info.operand_count);
    return std::ranges::any_of(operands, is_unsafe) ? 0 : instruction.info.length;
}

} // namespace gpusnoop::x86_64

namespace gpusnoop {

const Decoder& x86_64_decoder()
{
    static const x86_64::X86_64 decoder;
    return decoder;
}

} // namespace gpusnoop
