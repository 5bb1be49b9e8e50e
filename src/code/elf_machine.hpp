// SPDX-License-Identifier: Apache-2.0
// What the machine that this runs on means in ELF files. Programs of others are not traced.
#pragma once

#include <cstdint>
#include <elf.h>

namespace gpusnoop {

struct ElfMachine {
    const char* name;
    uint16_t number;
    // Relocations: the address of a symbol, as a pointer to call it through, and as any other; the same, to which a
    // number is added; an address in the file itself.
    uint32_t jump_slot, global, absolute, relative;
};

constexpr ElfMachine elf_of_x86_64 = {"x86-64",          EM_X86_64,   R_X86_64_JUMP_SLOT,
                                      R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_RELATIVE};
constexpr ElfMachine elf_of_arm64 = {"aarch64",          EM_AARCH64,      R_AARCH64_JUMP_SLOT,
                                     R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_RELATIVE};
#if defined(__aarch64__)
constexpr ElfMachine elf_of_host = elf_of_arm64, elf_of_other = elf_of_x86_64;
#else
constexpr ElfMachine elf_of_host = elf_of_x86_64, elf_of_other = elf_of_arm64;
#endif

} // namespace gpusnoop
