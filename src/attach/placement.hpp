// SPDX-License-Identifier: Apache-2.0
// Placement of a uprobe at the instruction of a function where it is cheapest. The kernel must single-step an
// instruction that it cannot emulate, which is 30 times as expensive on a virtual machine.
#pragma once

#include "bpf/shared/probe.h"
#include "code/dispatch_tables.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace gpusnoop {

struct Placement {
    uint64_t delta = 0;    // bytes from the function's start
    bool emulated = false; // true if the kernel can emulate the probed instruction
};

// code: the function's first bytes (16 are enough). The probe is placed after an instruction only if that instruction
// does not branch and does not change rsp, the argument registers or the return address.
Placement place_on_x86_64(std::span<const uint8_t> code);
Placement place_on_arm64(std::span<const uint8_t> code);

inline Placement place(std::span<const uint8_t> code)
{
#if defined(__aarch64__)
    return place_on_arm64(code);
#else
    return place_on_x86_64(code);
#endif
}

// Placement for trampolines, which forward to another function through a table. A probe on a trampoline is expensive if
// the kernel must single-step the trampoline's instruction. The other function has the same arguments and returns to
// the same caller.

// Chooses the function to probe, and returns its file offset and the placement within it. Chooses the trampoline's
// target only if the probe is emulated there but not on the trampoline, and if the trampoline passes on all arguments
// that the row reads. Otherwise chooses `function` itself.
std::pair<uint64_t, Placement> place(const Elf& elf, DispatchTables& tables, const Symbol& function,
                                     const probe_row& row);

} // namespace gpusnoop
