// SPDX-License-Identifier: Apache-2.0
#include "attach/dispatch_tables.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace gpusnoop {
namespace {

constexpr size_t beginning = 32;
constexpr size_t dispatch_max = 256;        // 120 in HIP 7.2
constexpr size_t table_code_max = 64 << 10; // 7 KiB in HIP 7.2
constexpr size_t tables_max = 16;           // of a file: HIP has three

bool keeps(const Dispatch& dispatch, const probe_row& row)
{
    unsigned whole = row.block_base >= BLOCK_REGISTER ? 1U << (row.block_base - BLOCK_REGISTER) : 0, low = 0;
    for (const operand& argument : row.args)
        if (argument.word < WORD_ZERO)
            (argument.part == PART_LOW ? low : whole) |= 1U << argument.word;
    return (whole & ~unsigned{dispatch.whole}) == 0 && (low & ~unsigned{dispatch.low}) == 0;
}

} // namespace

std::pair<uint64_t, Placement> DispatchTables::place(const Symbol& function, const probe_row& row)
{
    const auto bytes = [&](size_t most) {
        return elf_.bytes(function.file_offset, function.size ? std::min<size_t>(function.size, most) : most);
    };
    const Placement here = gpusnoop::place(bytes(beginning));
    if (here.emulated)
        return {function.file_offset, here};
    const std::vector<uint8_t> code = bytes(dispatch_max);
    if (const auto other = behind({code, function.address}, row))
        if (const Placement there = gpusnoop::place(elf_.bytes(*other, beginning)); there.emulated)
            return {*other, there};
    return {function.file_offset, here};
}

std::optional<uint64_t> DispatchTables::behind(const Code& function, const probe_row& row)
{
    const auto dispatch = x86_64_decoder().dispatch(function);
    if (!dispatch || !keeps(*dispatch, row))
        return std::nullopt;
    const Table& table = table_of(dispatch->table_of);
    const auto found = table.find(dispatch->slot);
    return found == table.end() || !image_.executable(found->second) ? std::nullopt : elf_.offset_of(found->second);
}

const DispatchTables::Table& DispatchTables::table_of(uint64_t function)
{
    static const Table none;
    if (const auto known = tables_.find(function); known != tables_.end())
        return known->second;
    if (tables_.size() >= tables_max)
        return none;
    Table& table = tables_[function];
    const auto offset = image_.executable(function) ? elf_.offset_of(function) : std::nullopt;
    if (!offset)
        return table;
    const std::vector<uint8_t> code = elf_.bytes(*offset, table_code_max);
    const std::vector<Filled> filled = x86_64_decoder().filled({code, function});
    std::vector<uint64_t> words;
    for (const Filled& one : filled)
        if (one.pointer.kind == Argument::loaded)
            words.push_back(one.pointer.value);
    const auto pointers = image_.pointers(words);
    for (const Filled& one : filled) {
        if (one.pointer.kind == Argument::constant)
            table.emplace(one.slot, one.pointer.value);
        else if (const auto pointer = pointers.find(one.pointer.value); pointer != pointers.end())
            table.emplace(one.slot, pointer->second);
    }
    return table;
}

} // namespace gpusnoop
