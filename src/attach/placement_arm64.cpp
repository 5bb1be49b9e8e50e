// SPDX-License-Identifier: Apache-2.0
#include "attach/placement.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop {
namespace {

// Instructions that the kernel simulates (arm_probe_decode_insn() in arch/arm64/kernel/probes/decode-insn.c). nop is
// left out, because Linux 7.3 simulates it, but 6.12 does not.
struct Simulated {
    uint32_t mask, value;
};
constexpr Simulated simulated[] = {
    {0x9f000000, 0x10000000}, {0x9f000000, 0x90000000},                           // adr, adrp
    {0xfc000000, 0x14000000}, {0xfc000000, 0x94000000},                           // b, bl
    {0xff000010, 0x54000000},                                                     // b.cond
    {0x7f000000, 0x34000000}, {0x7f000000, 0x35000000},                           // cbz, cbnz
    {0x7f000000, 0x36000000}, {0x7f000000, 0x37000000},                           // tbz, tbnz
    {0xfffffc1f, 0xd61f0000}, {0xfffffc1f, 0xd63f0000}, {0xfffffc1f, 0xd65f0000}, // br, blr, ret
};

} // namespace

// Always chooses the first instruction, because a return probe placed after a change of sp or x30 would not fire.
// Nearly all driver functions begin with an instruction that the kernel simulates, so few probes need slow
// single-stepping.
Placement place_on_arm64(std::span<const uint8_t> code)
{
    uint32_t word = 0;
    if (code.size() < sizeof(word))
        return {};
    std::memcpy(&word, code.data(), sizeof(word));
    return {0, std::ranges::any_of(simulated, [&](const Simulated& s) { return (word & s.mask) == s.value; })};
}

} // namespace gpusnoop
