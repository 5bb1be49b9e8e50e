// SPDX-License-Identifier: Apache-2.0
#include "output/flame_stack.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace gpusnoop {
namespace {

constexpr std::string_view of_kernel = " (kernel)";

// Columns by header or key. Those of owners are there where rows are by them, or -X asks for them.
constexpr std::string_view owners[] = {"NAMESPACE", "POD", "CONTAINER", "OWNER", "CGROUP"};
// What happened, of which a row has one.
constexpr std::string_view happened[] = {"KERNEL", "after_kernel", "kind", "wait", "command", "OP", "CALL"};

const Cell* shown(std::span<const Column> columns, const Row& row, std::string_view name, bool in_text)
{
    for (size_t i = 0; i < columns.size(); i++)
        if (columns[i].is_called(name) && (columns[i].in_text || !in_text) &&
            !std::holds_alternative<std::monostate>(cell_at(row, i)))
            return &cell_at(row, i);
    return nullptr;
}

// Offsets would tell places of one function apart.
std::string function_of(std::string_view frame)
{
    const size_t file = frame.rfind(" (");
    const std::string_view behind = file == std::string_view::npos ? std::string_view() : frame.substr(file);
    std::string_view function = frame.substr(0, file);
    function = function.substr(0, function.starts_with("0x") ? function.npos : function.rfind("+0x"));
    return printable(function).append(behind == of_kernel ? std::string(kernel_mark) : printable(behind));
}

std::string process_of(std::span<const Column> columns, const Row& row)
{
    const Cell* const name = shown(columns, row, "comm", false);
    const Cell* const pid = shown(columns, row, "pid", false);
    const auto* text = name ? std::get_if<std::string>(name) : nullptr;
    const auto* number = pid ? std::get_if<uint64_t>(pid) : nullptr;
    return (text ? printable(*text) : std::string("?")) + (number ? fmt::format("-{}", *number) : "");
}

} // namespace

std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below)
{
    std::vector<std::string> stack;
    for (const std::string_view name : owners)
        if (const Cell* const owner = shown(columns, row, name, true))
            if (const auto* text = std::get_if<std::string>(owner))
                stack.push_back(printable(*text));
    stack.push_back(process_of(columns, row));
    if (const Cell* const thread = shown(columns, row, "TID", true))
        if (const auto* number = std::get_if<uint64_t>(thread))
            stack.push_back(fmt::format("thread {}", *number));
    for (const ExtraLines* list = &below; list; list = list->then)
        if (list->key == ExtraLines().key)
            std::transform(list->lines.rbegin(), list->lines.rend(), std::back_inserter(stack), function_of);
    for (const std::string_view name : happened)
        if (const Cell* const what = shown(columns, row, name, false))
            if (const auto* text = std::get_if<std::string>(what)) {
                stack.push_back(printable(*text));
                break;
            }
    return stack;
}

} // namespace gpusnoop
