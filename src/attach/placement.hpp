// SPDX-License-Identifier: Apache-2.0
// Where in a function a uprobe costs least. A probe on an instruction that the kernel does not emulate is
// single-stepped, which on a virtual machine costs 30 times as much.
#pragma once

#include <cstdint>
#include <span>

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

} // namespace gpusnoop
