// SPDX-License-Identifier: Apache-2.0
#include "code/paths_x86_64.hpp"

#include "code/registers_x86_64.hpp"
#include "code/ways.hpp"

#include <utility>

namespace gpusnoop::x86_64 {
namespace {

constexpr size_t rax = 0, rsp = 4, rdi = 7;

class Walk {
public:
    Walk(const CodeAt& code_at, std::optional<Way> argument, int depth) : code_at_(code_at), depth_(depth)
    {
        held_[rdi] = std::move(argument);
    }

    // What the function returns; nullopt where that is not on the way, or its code does more than to find it.
    std::optional<Way> through(const Code& code)
    {
        Instruction instruction;
        size_t at = 0;
        for (size_t step = 0; step < Way::steps_max && decode(code.bytes.subspan(at), instruction); step++) {
            at += instruction.info.length;
            const uint64_t next = code.address + at;
            if (instruction.is(ZYDIS_MNEMONIC_RET))
                return held_[rax];
            if (instruction.is(ZYDIS_MNEMONIC_JMP))
                return called(instruction, next);
            if (instruction.is(ZYDIS_MNEMONIC_CALL)) {
                std::optional<Way> result = called(instruction, next);
                for (const size_t number : lost_in_calls)
                    held_[number].reset();
                held_[rax] = std::move(result);
            } else {
                follow(instruction);
            }
        }
        return std::nullopt;
    }

private:
    std::optional<Way> called(const Instruction& instruction, uint64_t next)
    {
        const ZydisDecodedOperand& target = instruction.operands[0];
        if (target.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !held_[rdi] || depth_ >= Way::deepest)
            return std::nullopt;
        const uint64_t address = next + target.imm.value.u;
        const std::vector<uint8_t> bytes = code_at_(address);
        return Walk(code_at_, held_[rdi], depth_ + 1).through({bytes, address});
    }

    // A branch is one for a null pointer, and not taken.
    void follow(const Instruction& instruction)
    {
        const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
        const auto target = to.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(to.reg.value) : std::nullopt;
        if (target && to.size == 64 && *target != rsp) {
            std::optional<Way> value = assigned(instruction, from, held_[*target]);
            if (value || (to.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
                held_[*target] = std::move(value);
            return;
        }
        for (size_t i = 0; i < instruction.info.operand_count; i++) {
            const ZydisDecodedOperand& operand = instruction.operands[i];
            if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
                if (const auto number = number_of(operand.reg.value))
                    held_[*number].reset();
        }
    }

    std::optional<Way> assigned(const Instruction& instruction, const ZydisDecodedOperand& from,
                                const std::optional<Way>& before) const
    {
        if (instruction.is(ZYDIS_MNEMONIC_ADD) && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return plus(before, from.imm.value.s);
        const auto source = from.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from.reg.value) : std::nullopt;
        if (instruction.is(ZYDIS_MNEMONIC_MOV) && source)
            return held_[*source];
        const auto base = from.type == ZYDIS_OPERAND_TYPE_MEMORY && from.mem.index == ZYDIS_REGISTER_NONE
                              ? number_of(from.mem.base)
                              : std::nullopt;
        std::optional<Way> place = base ? plus(held_[*base], from.mem.disp.value) : std::nullopt;
        if (instruction.is(ZYDIS_MNEMONIC_LEA))
            return place;
        return instruction.is(ZYDIS_MNEMONIC_MOV) && from.size == 64 ? loaded_from(place) : std::nullopt;
    }

    const CodeAt& code_at_;
    int depth_;
    std::array<std::optional<Way>, registers> held_;
};

} // namespace

std::optional<Path> path_of(const Code& code, const CodeAt& code_at)
{
    return path_by(Walk(code_at, Way{}, 0).through(code));
}

} // namespace gpusnoop::x86_64
