// SPDX-License-Identifier: Apache-2.0
// Functions behind others that only look them up in a table: from ROCm 6.1 on, nearly all that libamdhip64 exports. A
// probe on the one in front would be single-stepped; the one behind begins with an instruction that is emulated, has
// the same arguments, and returns to the same caller. What a file says is checked, never assumed.
#pragma once

#include "attach/placement.hpp"
#include "elf/elf.hpp"
#include "elf/elf_image.hpp"
#include "instructions/decoder.hpp"

#include "bpf/shared/probe.h"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gpusnoop {

class DispatchTables {
public:
    explicit DispatchTables(const Elf& elf) : elf_(elf), image_(elf) {}

    // Where in the file the function begins that a probe is to sit in, and where there: this one, or where it would be
    // single-stepped and another one is known that all arguments of the row come to, that.
    std::pair<uint64_t, Placement> place(const Symbol& function, const probe_row& row);

private:
    std::optional<uint64_t> behind(const Code& function, const probe_row& row);
    using Table = std::unordered_map<uint64_t, uint64_t>; // addresses of functions, by their places in it

    const Table& table_of(uint64_t function);

    const Elf& elf_;
    ElfImage image_;
    std::map<uint64_t, Table> tables_;
};

} // namespace gpusnoop
