// SPDX-License-Identifier: Apache-2.0
#include "rows/table.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <string_view>
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
            else if constexpr (std::is_same_v<Value, double>) // std::sort needs a strict order, which NaN would violate
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

namespace {

// Names of units in recordings.
constexpr std::string_view units[] = {"text", "count", "rate", "bytes", "us", "s", "percent", "dim3", "hex", "time"};
constexpr std::string_view no_key = "-", calls_flag = "calls", is_level = "level";
constexpr int width_max = 200;

} // namespace

std::vector<std::string> table_columns(std::span<const Column> columns)
{
    std::vector<std::string> all;
    for (const Column& column : columns)
        if (column.in_text && !column.header.empty())
            all.push_back(fmt::format("{} {} {} {}{}{}", column.header, column.key.empty() ? no_key : column.key,
                                      units[static_cast<size_t>(column.unit)], column.width,
                                      column.of_calls ? " calls" : "", column.is_level ? " level" : ""));
    return all;
}

RecordedColumns::RecordedColumns(std::span<const std::string> texts)
{
    for (const std::string& text : texts)
        add(text);
}

void RecordedColumns::add(const std::string& text)
{
    std::string_view rest = text;
    const std::string_view header = next_part(rest, ' '), key = next_part(rest, ' '), unit_name = next_part(rest, ' '),
                           width_text = next_part(rest, ' ');
    const auto* const unit = std::ranges::find(units, unit_name);
    const auto width = leading_number<int>(width_text);
    const bool plain = std::ranges::all_of(header, [](char c) { return c > ' ' && c < '\x7f'; });
    if (header.empty() || !plain || key.empty() || unit == std::end(units) || !width || *width < 0 ||
        *width > width_max)
        return;
    Column column{names_.emplace_back(header), key == no_key ? std::string_view() : names_.emplace_back(key),
                  static_cast<Unit>(unit - std::begin(units)), static_cast<int16_t>(*width)};
    for (std::string_view flag = next_part(rest, ' '); !flag.empty(); flag = next_part(rest, ' ')) {
        column.of_calls |= flag == calls_flag;
        column.is_level |= flag == is_level;
    }
    all_.push_back(column);
}

namespace {

void append_integer(std::string& to, uint64_t value)
{
    const fmt::format_int digits(value);
    to.append(digits.data(), digits.size());
}

// Appends microseconds: one decimal below 100 us, none above.
void append_microseconds(std::string& to, uint64_t ns)
{
    const uint64_t tenths = ns / 100 + (ns % 100 >= 50);
    if (tenths >= 1000)
        return append_integer(to, ns / 1000 + (ns % 1000 >= 500));
    append_integer(to, tenths / 10);
    to += '.';
    append_integer(to, tenths % 10);
}

void append_value(std::string& to, LocalTime&, Unit, std::monostate)
{
    to += '-';
}

void append_value(std::string&, LocalTime&, Unit, const std::string&) {} // handled in append()

void append_value(std::string& to, LocalTime&, Unit, const Dim3& value)
{
    append_format(to, "{},{},{}", value[0], value[1], value[2]);
}

void append_value(std::string& to, LocalTime& time, Unit unit, uint64_t value)
{
    switch (unit) {
    case Unit::bytes:
        to += human_bytes(value);
        break;
    case Unit::ns_as_us:
        append_microseconds(to, value);
        break;
    case Unit::seconds: {
        const uint64_t microseconds = value / 1000 + (value % 1000 >= 500);
        append_format(to, "{}.{:06}", microseconds / 1'000'000, microseconds % 1'000'000);
        break;
    }
    case Unit::hex:
        append_format(to, "{:#x}", value);
        break;
    case Unit::time:
        time.append_clock(to, value);
        break;
    default:
        append_integer(to, value);
    }
}

void append_value(std::string& to, LocalTime& time, Unit unit, int64_t value)
{
    if (value >= 0 || unit == Unit::hex)
        return append_value(to, time, unit, static_cast<uint64_t>(value));
    to += '-';
    append_value(to, time, unit, -static_cast<uint64_t>(value));
}

void append_value(std::string& to, LocalTime& time, Unit unit, AtLeast value)
{
    to += ">=";
    append_value(to, time, unit, value.count);
}

void append_value(std::string& to, LocalTime& time, Unit unit, double value)
{
    if (!std::isfinite(value))
        return append_value(to, time, unit, std::monostate{});
    const bool has_own_form = unit == Unit::bytes || unit == Unit::ns_as_us || unit == Unit::seconds;
    // A `double` with such a unit is, for example, a rate in bytes per second, or a mean in nanoseconds. It is printed
    // like an integer with this unit.
    if (has_own_form && std::fabs(value) < 9e18)
        return append_value(to, time, unit, static_cast<int64_t>(std::llround(value)));
    append_format(to, "{:.1f}", value);
}

void append_value(std::string& to, LocalTime& time, Unit unit, const Estimate& value)
{
    to += '~';
    std::visit([&](auto figure) { append_value(to, time, unit, figure); }, value.value);
}

} // namespace

bool is_left_aligned(Unit unit)
{
    return unit == Unit::text || unit == Unit::dim3 || unit == Unit::hex || unit == Unit::time;
}

size_t width_of(const Column& column)
{
    return std::max({column.header.size(), static_cast<size_t>(std::max<int>(column.width, 0)), size_t{1}});
}

size_t CellText::append(std::string& to, Unit unit, const Cell& cell, size_t width)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        return append_printable(to, *text, width);
    const size_t start = to.size();
    std::visit([&](const auto& value) { append_value(to, time_, unit, value); }, cell);
    return to.size() - start;
}

} // namespace gpusnoop
