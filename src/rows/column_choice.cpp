// SPDX-License-Identifier: Apache-2.0
#include "rows/column_choice.hpp"

#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

bool is_change(std::string_view name)
{
    return name.starts_with('+') || name.starts_with('-');
}

std::string list_of(std::span<const ColumnOnOffer> columns)
{
    std::string text = "Columns and their JSON keys; those marked + are shown only on request (--columns +NAME):\n";
    for (const auto& [column, usual] : columns)
        if (!column.header.empty())
            append_format(text, "  {}{:<14} {}\n", usual ? ' ' : '+', column.header, column.key);
    return text;
}

// As it is in JSON.
std::string_view unit_name(Unit unit)
{
    constexpr std::string_view names[] = {"text", "count",   "rate", "bytes", "ns",
                                          "ns",   "percent", "dim3", "hex",   "time"};
    return names[static_cast<size_t>(unit)];
}

// Of names that we gave: there is nothing to escape in them.
void append_json(std::string& text, std::string_view place, const Column& column)
{
    append_format(text,
                  R"({{"in":"{}","header":"{}","key":"{}","unit":"{}"}})"
                  "\n",
                  place, column.header, column.key, unit_name(column.unit));
}

std::string json_of(std::span<const ColumnOnOffer> columns, std::span<const OtherColumns> others)
{
    std::string text;
    for (const ColumnOnOffer& one : columns)
        append_json(text, "table", one.column);
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

void check_columns(std::span<const std::string> names, std::span<const ColumnOnOffer> columns,
                   std::span<const OtherColumns> others)
{
    for (const std::string_view name : names) {
        if (name == "help")
            throw Answer(list_of(columns));
        if (name == "json")
            throw Answer(json_of(columns, others));
        const std::string_view called = name.substr(is_change(name));
        if (std::ranges::none_of(columns, [&](const ColumnOnOffer& one) {
                return !one.column.header.empty() && one.column.is_called(called);
            })) {
            std::string text;
            std::string headers;
            for (const ColumnOnOffer& one : columns)
                if (!one.column.header.empty())
                    append_format(headers, "{}{}", headers.empty() ? "" : ", ", one.column.header);
            append_format(text, "there is no column '{}' to show (--columns): --columns help lists them{}", called,
                          suggestion(called, headers));
            throw UsageError(text);
        }
    }
}

} // namespace gpusnoop
