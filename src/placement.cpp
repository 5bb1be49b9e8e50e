// SPDX-License-Identifier: Apache-2.0
#include "placement.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpusnoop {

namespace {

struct Pattern {
    size_t length; // of the whole instruction
    size_t fixed;  // leading bytes that tell what it is
    std::array<uint8_t, 4> value;
    std::array<uint8_t, 4> mask;

    bool matches(std::span<const uint8_t> code) const
    {
        if (code.size() < fixed)
            return false;
        for (size_t i = 0; i < fixed; i++)
            if ((code[i] & mask[i]) != value[i])
                return false;
        return true;
    }
};

// What branch_setup_xol_ops() and push_setup_xol_ops() of arch/x86/kernel/uprobes.c take, and so never single-step. A
// branch behind a 66 prefix is refused with ENOTSUPP, a push behind any prefix but REX.B (41) is single-stepped: no
// pattern has a prefix byte, so neither can match. Kernels from about 6.16 emulate long nops too: not counted on.
constexpr Pattern emulated_instructions[] = {
    {1, 1, {0x50}, {0xf8}},             // push %rax..%rdi
    {2, 2, {0x41, 0x50}, {0xff, 0xf8}}, // push %r8..%r15
    {1, 1, {0x90}, {0xff}},             // nop
    {2, 1, {0x70}, {0xf0}},             // jcc short
    {6, 2, {0x0f, 0x80}, {0xff, 0xf0}}, // jcc near
    {2, 1, {0xeb}, {0xff}},             // jmp short
    {5, 1, {0xe9}, {0xff}},             // jmp near; jmp *mem (ff 25) is single-stepped
    {5, 1, {0xe8}, {0xff}},             // call near
};

// What may run before the probe: writes at most the flags, rax, r10 and r11, none of which carries an argument that
// anyone reads; no store, no branch, no stack.
constexpr Pattern harmless_instructions[] = {
    {4, 4, {0xf3, 0x0f, 0x1e, 0xfa}, {0xff, 0xff, 0xff, 0xff}}, // endbr64
    {7, 2, {0x80, 0x3d}, {0xff, 0xff}},                         // cmpb $imm8,disp32(%rip)
    {10, 2, {0x81, 0x3d}, {0xff, 0xff}},                        // cmpl $imm32,disp32(%rip): libcuda's gate
    {7, 2, {0x83, 0x3d}, {0xff, 0xff}},                         // cmpl $imm8,disp32(%rip)
    {11, 3, {0x48, 0x81, 0x3d}, {0xff, 0xff, 0xff}},            // cmpq $imm32,disp32(%rip)
    {8, 3, {0x48, 0x83, 0x3d}, {0xff, 0xff, 0xff}},             // cmpq $imm8,disp32(%rip)
    {7, 2, {0xf6, 0x05}, {0xff, 0xff}},                         // testb $imm8,disp32(%rip)
    {3, 2, {0x83, 0xf8}, {0xff, 0xf8}},                         // cmp $imm8,%r32
    {4, 3, {0x48, 0x83, 0xf8}, {0xfe, 0xff, 0xf8}},             // cmp $imm8,%r64
    {2, 2, {0x84, 0xc0}, {0xfe, 0xc0}},                         // test %r,%r (8 and 32 bits)
    {3, 3, {0x40, 0x84, 0xc0}, {0xf0, 0xfe, 0xc0}},             // the same with REX
    {2, 2, {0x31, 0xc0}, {0xfd, 0xff}},                         // xor %eax,%eax (31 and 33)
    {5, 1, {0xb8}, {0xff}},                                     // mov $imm32,%eax
    {3, 3, {0x48, 0x89, 0xc0}, {0xfb, 0xff, 0xc7}},             // mov %r64,%rax
    {6, 2, {0x8b, 0x05}, {0xff, 0xff}},                         // mov disp32(%rip),%eax
    {7, 3, {0x48, 0x8b, 0x05}, {0xff, 0xff, 0xff}},             // mov disp32(%rip),%rax
    {7, 3, {0x44, 0x8b, 0x15}, {0xf7, 0xff, 0xf7}},             // mov disp32(%rip),%r10 %r11 %r10d %r11d
    {7, 3, {0x0f, 0xb6, 0x05}, {0xff, 0xff, 0xff}},             // movzbl disp32(%rip),%eax
    {7, 3, {0x48, 0x8d, 0x05}, {0xff, 0xff, 0xff}},             // lea disp32(%rip),%rax
    {7, 3, {0x4c, 0x8d, 0x15}, {0xff, 0xff, 0xf7}},             // lea disp32(%rip),%r10 %r11
};

// More than real prologues need (endbr64, load, compare), and a bound on how far from the entry a probe can land.
constexpr int max_steps = 4;

const Pattern* find(std::span<const Pattern> table, std::span<const uint8_t> code)
{
    const auto match = std::find_if(table.begin(), table.end(), [&](const Pattern& p) { return p.matches(code); });
    return match == table.end() ? nullptr : &*match;
}

} // namespace

Placement place(std::span<const uint8_t> code)
{
    size_t delta = 0;
    for (int step = 0; step <= max_steps; step++) {
        const auto rest = code.subspan(delta);
        // The kernel judges by the opcode, so the operand may lie behind the bytes at hand.
        if (find(emulated_instructions, rest) != nullptr)
            return {delta, true};
        const Pattern* harmless = find(harmless_instructions, rest);
        if (harmless == nullptr || harmless->length > rest.size())
            break;
        delta += harmless->length;
    }
    return {};
}

} // namespace gpusnoop
