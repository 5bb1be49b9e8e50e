// SPDX-License-Identifier: Apache-2.0
// The symbols of a file without section headers (strip --strip-section-headers), found as the loader finds them: it
// asks the segments alone.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <elf.h>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

struct DynamicSymbols {
    std::vector<Elf64_Sym> symbols; // empty where there are none
    std::string strings;
    uint64_t soname = 0; // in the strings; 0: none
};

// Whatever the file says: tables that do not fit in it, or that are larger than real ones, count as absent.
DynamicSymbols dynamic_symbols(const Fd& file, std::span<const Elf64_Phdr> segments);

} // namespace gpusnoop
