// SPDX-License-Identifier: Apache-2.0
// Unwinding rules read from an arbitrary file, for arbitrary addresses.
#include "code/call_frames.hpp"
#include "base/error.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
try {
    const Elf elf(file_with(input));
    const CallFrames frames(elf);
    for (uint64_t address = 0; address < 2 * input.size() && address < 1 << 16; address += 1 + input.size() / 64) {
        frames.function_start(address);
        const auto rule = frames.rule(address);
        expect(!rule || rule->base_register < FrameRegisters::count, "base register is valid");
    }
} catch (const Error&) { // most inputs are not ELF files
}
