// SPDX-License-Identifier: Apache-2.0
#include "code/dispatch_tables.hpp"

#include <algorithm>
#include <vector>

namespace gpusnoop {

namespace {

constexpr size_t dispatch_max = 256;        // maximum bytes of a forwarding function; up to 120 in HIP 7.2
constexpr size_t table_code_max = 64 << 10; // maximum bytes of a function that fills a table; 7 KiB in HIP 7.2
constexpr size_t tables_max = 16;           // maximum tables per file; HIP has three

} // namespace

std::optional<DispatchTables::Target> DispatchTables::target(const Symbol& function)
{
    const size_t longest = function.size ? std::min<size_t>(function.size, dispatch_max) : dispatch_max;
    const std::vector<uint8_t> code = elf_.bytes(function.file_offset, longest);
    const auto dispatch = host_decoder().dispatch({code, function.address});
    if (!dispatch)
        return std::nullopt;
    const Table& table = table_of(dispatch->table_of);
    const auto found = table.find(dispatch->slot);
    if (found == table.end() || !image_.executable(found->second))
        return std::nullopt;
    return Target{found->second, dispatch->whole, dispatch->low};
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
    const std::vector<Filled> filled = host_decoder().filled({code, function});
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
