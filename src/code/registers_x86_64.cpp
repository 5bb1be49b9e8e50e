// SPDX-License-Identifier: Apache-2.0
#include "code/registers_x86_64.hpp"

namespace gpusnoop::x86_64 {
namespace {

constexpr size_t max_pushed = 64;

const ZydisDecoder& zydis()
{
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return decoder;
}

} // namespace

bool decode(std::span<const uint8_t> bytes, Instruction& to)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis(), bytes.data(), bytes.size(), &to.info, to.operands));
}

std::optional<size_t> number_of(ZydisRegister reg)
{
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
        return std::nullopt;
    const auto id = static_cast<size_t>(ZydisRegisterGetId(whole));
    return id < registers ? std::optional(id) : std::nullopt;
}

bool is_memory_at_rip(const ZydisDecodedOperand& operand)
{
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RIP &&
           operand.mem.index == ZYDIS_REGISTER_NONE;
}

Argument Registers::source(const ZydisDecodedOperand& operand, uint64_t next) const
{
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return {Argument::constant, operand.imm.value.u};
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER)
        if (const auto number = number_of(operand.reg.value))
            return values_[*number];
    if (is_memory_at_rip(operand) && operand.size == 64)
        return {Argument::loaded, next + static_cast<uint64_t>(operand.mem.disp.value)};
    return {};
}

// Returns the value that the instruction writes to its first operand.
Argument Registers::result(const Instruction& instruction, uint64_t next) const
{
    const ZydisDecodedOperand& second = instruction.operands[1];
    if (instruction.is(ZYDIS_MNEMONIC_MOV))
        return source(second, next);
    if (instruction.is(ZYDIS_MNEMONIC_LEA)) {
        if (is_memory_at_rip(second))
            return {Argument::constant, next + static_cast<uint64_t>(second.mem.disp.value)};
        const auto base = number_of(second.mem.base);
        if (base && values_[*base].kind == Argument::constant && second.mem.index == ZYDIS_REGISTER_NONE)
            return {Argument::constant, values_[*base].value + static_cast<uint64_t>(second.mem.disp.value)};
        return {};
    }
    const bool same =
        second.type == ZYDIS_OPERAND_TYPE_REGISTER && second.reg.value == instruction.operands[0].reg.value;
    if ((instruction.is(ZYDIS_MNEMONIC_XOR) || instruction.is(ZYDIS_MNEMONIC_SUB)) && same)
        return {Argument::constant, 0};
    if (instruction.is(ZYDIS_MNEMONIC_OR) && second.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && second.imm.value.s == -1)
        return {Argument::constant, UINT64_MAX};
    return {};
}

void Registers::forget_written(const Instruction& instruction)
{
    for (size_t i = 0; i < instruction.info.operand_count; i++) {
        const ZydisDecodedOperand& operand = instruction.operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            if (const auto number = number_of(operand.reg.value))
                values_[*number] = {};
    }
}

void Registers::follow_stack(const Instruction& instruction, uint64_t next)
{
    const ZydisDecodedOperand& first = instruction.operands[0];
    if (instruction.is(ZYDIS_MNEMONIC_PUSH)) {
        if (pushed_.size() == max_pushed)
            pushed_.clear();
        pushed_.push_back(source(first, next));
        return;
    }
    Argument top;
    if (!pushed_.empty()) {
        top = pushed_.back();
        pushed_.pop_back();
    }
    forget_written(instruction);
    if (first.type == ZYDIS_OPERAND_TYPE_REGISTER)
        if (const auto number = number_of(first.reg.value))
            values_[*number] = top;
}

void Registers::follow(const Instruction& instruction, uint64_t next)
{
    switch (instruction.info.meta.category) {
    case ZYDIS_CATEGORY_CALL:
        for (const size_t number : lost_in_calls)
            values_[number] = {};
        pushed_.clear();
        return;
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
        *this = {}; // only branches from elsewhere reach the next instruction
        return;
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
        follow_stack(instruction, next);
        return;
    default:
        break;
    }
    const ZydisDecodedOperand& first = instruction.operands[0];
    const bool writes = instruction.info.operand_count_visible >= 2 && first.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        (first.actions & ZYDIS_OPERAND_ACTION_WRITE);
    const auto number = writes ? number_of(first.reg.value) : std::nullopt;
    Argument value = number && first.size >= 32 ? result(instruction, next) : Argument{};
    forget_written(instruction);
    if (!number)
        return;
    if (first.size == 32 && value.kind == Argument::constant)
        value.value &= UINT32_MAX;
    else if (first.size == 32)
        value = {};
    values_[*number] = value;
    // After the stack pointer has moved, a pop no longer matches the last push.
    if (*number == 4)
        pushed_.clear();
}

} // namespace gpusnoop::x86_64
