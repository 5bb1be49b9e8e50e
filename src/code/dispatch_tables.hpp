// SPDX-License-Identifier: Apache-2.0
// Functions behind others that only look them up in a table: from ROCm 6.1 on, nearly all that libamdhip64 exports.
// What a file says is checked, never assumed.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace gpusnoop {

class DispatchTables {
public:
    explicit DispatchTables(const Elf& elf) : elf_(elf), image_(elf) {}

    struct Behind {
        uint64_t address = 0;       // of the function that this one hands its arguments to
        uint8_t whole = 0, low = 0; // as in Dispatch
    };
    // nullopt where it does anything else, or nobody knows what is in the table.
    std::optional<Behind> behind(const Symbol& function);

private:
    using Table = std::unordered_map<uint64_t, uint64_t>; // addresses of functions, by their places in it

    const Table& table_of(uint64_t function);

    const Elf& elf_;
    ElfImage image_;
    std::map<uint64_t, Table> tables_;
};

} // namespace gpusnoop
