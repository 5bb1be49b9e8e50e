// SPDX-License-Identifier: Apache-2.0
#include "rows/field.hpp"

#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

namespace {

bool is_change(std::string_view name)
{
    return name.starts_with('+') || name.starts_with('-');
}

std::string list_of(std::span<const Column> columns)
{
    std::string text = "Columns and their JSON keys; those marked + are shown only on request (--columns +NAME):\n";
    for (const Column& column : columns)
        if (!column.header.empty())
            append_format(text, "  {}{:<14} {}\n", column.on_request ? '+' : ' ', column.header, column.key);
    return text;
}

// Name of the unit of the JSON value.
std::string_view unit_name(Unit unit)
{
    constexpr std::string_view names[] = {"text", "count",   "rate", "bytes", "ns",
                                          "ns",   "percent", "dim3", "hex",   "time"};
    return names[static_cast<size_t>(unit)];
}

// Nothing is escaped, because all texts are constants of this program.
void append_json(std::string& text, std::string_view place, const Column& column)
{
    append_format(text,
                  R"({{"in":"{}","header":"{}","key":"{}","unit":"{}","on_request":"{}","about":"{}"}})"
                  "\n",
                  place, column.header, column.key, unit_name(column.unit), column.on_request ? "yes" : "no",
                  column.about);
}

std::string json_of(std::span<const Column> columns, std::span<const OtherColumns> others)
{
    std::string text;
    for (const Column& column : columns)
        append_json(text, "table", column);
    for (const OtherColumns& other : others)
        for (const Column& column : other.columns)
            append_json(text, other.of, column);
    return text;
}

} // namespace

bool ColumnChoice::shows(const Column& column, bool usually) const
{
    bool alone = false, shown = usually;
    for (const std::string_view name : names_) {
        alone |= !is_change(name);
        if (column.is_called(name))
            return true;
        if (is_change(name) && column.is_called(name.substr(1)))
            shown = name.starts_with('+');
    }
    return alone ? false : shown;
}

void check_columns(std::span<const std::string> names, std::span<const Column> columns,
                   std::span<const OtherColumns> others)
{
    for (const std::string_view name : names) {
        if (name == "help")
            throw Answer(list_of(columns));
        if (name == "json")
            throw Answer(json_of(columns, others));
        const std::string_view called = name.substr(is_change(name));
        if (std::ranges::none_of(
                columns, [&](const Column& column) { return !column.header.empty() && column.is_called(called); })) {
            std::string text;
            std::string headers;
            for (const Column& column : columns)
                if (!column.header.empty())
                    append_format(headers, "{}{}", headers.empty() ? "" : ", ", column.header);
            append_format(text, "there is no column '{}' to show (--columns): --columns help lists all columns{}",
                          called, suggestion(called, headers));
            throw UsageError(text);
        }
    }
}

void check_sort(std::span<const Column> columns, const std::string& sort)
{
    std::string names;
    for (const Column& column : columns) {
        if (column.is_called(sort))
            return;
        names += fmt::format("{}{}, ", column.header.empty() ? "" : fmt::format("{}, ", column.header), column.key);
    }
    throw UsageError(fmt::format(
        "there is no column '{}' to sort by (-s): give a header of the table, or a key of its rows in --json{}", sort,
        suggestion(sort, names)));
}

} // namespace gpusnoop
