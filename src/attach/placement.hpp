// SPDX-License-Identifier: Apache-2.0
// Where in a function a uprobe costs least. A probe on an instruction that the kernel does not emulate is
// single-stepped, which on a virtual machine costs 30 times as much.
#pragma once

#include "bpf/shared/probe.h"
#include "code/dispatch_tables.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace gpusnoop {

struct Placement {
    uint64_t delta = 0;    // bytes behind the function's first one
    bool emulated = false; // the kernel emulates the instruction there
};

// code: the function's first bytes (16 are enough). The probe may sit behind an instruction only if that leaves rsp,
// the argument registers and the return address untouched and cannot leave the straight line.
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

// Where the probe of a function sits that only looks another one up. On the one in front it would be single-stepped;
// the one behind begins with an instruction that is emulated, has the same arguments, and returns to the same caller.

// Where in the file the function begins that a probe is to sit in, and where there: this one, or where it would be
// single-stepped and another one is known that all arguments of the row come to, that.
std::pair<uint64_t, Placement> place(const Elf& elf, DispatchTables& tables, const Symbol& function,
                                     const probe_row& row);

} // namespace gpusnoop
