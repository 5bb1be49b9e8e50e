// SPDX-License-Identifier: Apache-2.0
// Decoder for x86-64, and abstract interpretation of its general registers.
#pragma once

#include "code/decoder.hpp"

#include <Zydis/Zydis.h>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop::x86_64 {

constexpr size_t registers = 16;
// Caller-saved: rax, rcx, rdx, rsi, rdi, r8 to r11.
constexpr std::array<size_t, 9> lost_in_calls = {0, 1, 2, 6, 7, 8, 9, 10, 11};

struct Instruction {
    ZydisDecodedInstruction info;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

    bool is(ZydisMnemonic mnemonic) const { return info.mnemonic == mnemonic; }
};

bool decode(std::span<const uint8_t> bytes, Instruction& to);

// Returns the number of the general register to which `reg` belongs: 0 for rax, eax, ax and al. nullopt for other
// registers.
std::optional<size_t> number_of(ZydisRegister reg);

bool is_memory_at_rip(const ZydisDecodedOperand& operand);

// Known values of the general registers.
class Registers {
public:
    void follow(const Instruction& instruction, uint64_t next);
    const Argument& operator[](size_t number) const { return values_[number]; }

private:
    Argument source(const ZydisDecodedOperand& operand, uint64_t next) const;
    Argument result(const Instruction& instruction, uint64_t next) const;
    void follow_stack(const Instruction& instruction, uint64_t next);
    void forget_written(const Instruction& instruction);

    std::array<Argument, registers> values_{};
    std::vector<Argument> pushed_; // pushed values, because compilers set arguments by push and pop with -Os
};

class X86_64 : public Decoder {
public:
    void branches(const Code& code, const std::function<void(const Branch&)>& found) const override;
    void minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const override;
    void addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const override;
    std::array<uint64_t, 3> stub_entries(uint64_t jump, std::span<const uint8_t> before) const override;
    std::optional<Arguments> arguments(const Code& code) const override;
    std::optional<Branch> first_call(const Code& code) const override;
    std::optional<Branch> thunk_jump(const Code& code) const override;
    std::optional<Dispatch> dispatch(const Code& code) const override;
    std::vector<Filled> filled(const Code& code) const override;
    std::optional<uint32_t> returned_field(const Code& code) const override;
    std::optional<uint32_t> returned_constant(const Code& code) const override;
    std::optional<Path> path(const Code& code, const CodeAt& code_at) const override;
    size_t skippable_length(std::span<const uint8_t> code) const override;
};

} // namespace gpusnoop::x86_64
