// SPDX-License-Identifier: Apache-2.0
#include "attach/placement.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr size_t prologue_bytes = 32;

bool keeps_arguments(const DispatchTables::Target& target, const probe_row& row)
{
    unsigned whole = row.block_base >= BLOCK_REGISTER ? 1U << (row.block_base - BLOCK_REGISTER) : 0, low = 0;
    for (const operand& argument : row.args)
        if (argument.word < WORD_ZERO)
            (argument.part == PART_LOW ? low : whole) |= 1U << argument.word;
    return (whole & ~unsigned{target.whole}) == 0 && (low & ~unsigned{target.low}) == 0;
}

} // namespace

std::pair<uint64_t, Placement> place(const Elf& elf, DispatchTables& tables, const Symbol& function,
                                     const probe_row& row)
{
    const size_t known = function.size ? std::min<size_t>(function.size, prologue_bytes) : prologue_bytes;
    const Placement here = place(elf.bytes(function.file_offset, known));
    if (here.emulated)
        return {function.file_offset, here};
    const auto target = tables.target(function);
    const auto other = target && keeps_arguments(*target, row) ? elf.offset_of(target->address) : std::nullopt;
    if (other)
        if (const Placement there = place(elf.bytes(*other, prologue_bytes)); there.emulated)
            return {*other, there};
    return {function.file_offset, here};
}

} // namespace gpusnoop
