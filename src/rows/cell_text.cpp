// SPDX-License-Identifier: Apache-2.0
#include "rows/cell_text.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gpusnoop {

namespace {

void append_integer(std::string& to, uint64_t value)
{
    const fmt::format_int digits(value);
    to.append(digits.data(), digits.size());
}

// One decimal as long as it says something.
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

void append_value(std::string&, LocalTime&, Unit, const std::string&) {} // append() has it

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
    if (has_own_form && std::fabs(value) < 9e18) // bytes per second, a mean of nanoseconds
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
