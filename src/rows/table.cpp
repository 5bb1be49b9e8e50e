// SPDX-License-Identifier: Apache-2.0
#include "rows/table.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

namespace gpusnoop {

Cell::Cell(const Cell& other) = default;
Cell::Cell(Cell&& other) noexcept = default;
Cell& Cell::operator=(const Cell& other) = default;
Cell& Cell::operator=(Cell&& other) noexcept = default;
Cell::~Cell() = default;

const Cell& cell_at(const Row& row, size_t column)
{
    static const Cell none;
    return column < row.size() ? row[column] : none;
}

double sort_value(const Cell& cell)
{
    return std::visit(
        [](const auto& value) -> double {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::monostate>)
                return -std::numeric_limits<double>::infinity();
            else if constexpr (std::is_same_v<Value, std::string>)
                return 0;
            else if constexpr (std::is_same_v<Value, Dim3>)
                return static_cast<double>(value[0]) * value[1] * value[2];
            else if constexpr (std::is_same_v<Value, AtLeast>)
                return static_cast<double>(value.count);
            else if constexpr (std::is_same_v<Value, Estimate>)
                return std::visit([](auto n) { return static_cast<double>(n); }, value.value);
            else if constexpr (std::is_same_v<Value, double>) // NaN would break the order that std::sort relies on
                return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
            else
                return static_cast<double>(value);
        },
        cell);
}

Cell estimate_of(const Cell& cell)
{
    if (const auto* count = std::get_if<uint64_t>(&cell))
        return Estimate{*count};
    if (const auto* number = std::get_if<double>(&cell))
        return Estimate{*number};
    return cell;
}

} // namespace gpusnoop
