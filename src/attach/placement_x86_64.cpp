// SPDX-License-Identifier: Apache-2.0
#include "attach/placement.hpp"

#include "code/decoder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpusnoop {

namespace {

// The first bytes of an instruction.
struct Opcode {
    size_t length;
    std::array<uint8_t, 2> value;
    std::array<uint8_t, 2> mask;

    bool begins(std::span<const uint8_t> code) const
    {
        if (code.size() < length)
            return false;
        for (size_t i = 0; i < length; i++)
            if ((code[i] & mask[i]) != value[i])
                return false;
        return true;
    }
};

// Instructions that the kernel emulates (branch_setup_xol_ops() and push_setup_xol_ops() in arch/x86/kernel/uprobes.c).
// Instructions with a prefix do not match, except a push with REX.B (41): the kernel refuses a branch with a 66 prefix
// (ENOTSUPP), and single-steps a push with any other prefix. Long nops are left out, because only kernels from
// about 6.16 on emulate them.
constexpr Opcode emulated_opcodes[] = {
    {1, {0x50}, {0xf8}},             // push %rax..%rdi
    {2, {0x41, 0x50}, {0xff, 0xf8}}, // push %r8..%r15
    {1, {0x90}, {0xff}},             // nop
    {1, {0x70}, {0xf0}},             // jcc short
    {2, {0x0f, 0x80}, {0xff, 0xf0}}, // jcc near
    {1, {0xeb}, {0xff}},             // jmp short
    {1, {0xe9}, {0xff}},             // jmp near; the indirect jmp *mem (ff 25) is left out, because the kernel
                                     // single-steps it
    {1, {0xe8}, {0xff}},             // call near
};

// Maximum number of instructions before the probe. Real prologues need fewer (endbr64, load, compare).
constexpr int max_steps = 4;

} // namespace

Placement place_on_x86_64(std::span<const uint8_t> code)
{
    size_t delta = 0;
    for (int step = 0; step <= max_steps; step++) {
        const auto rest = code.subspan(delta);
        // The kernel checks only the opcode, so the operand may lie past the end of `code`.
        if (std::ranges::any_of(emulated_opcodes, [&](const Opcode& opcode) { return opcode.begins(rest); }))
            return {delta, true};
        const size_t length = x86_64_decoder().skippable_length(rest);
        if (length == 0)
            break;
        delta += length;
    }
    return {};
}

} // namespace gpusnoop
