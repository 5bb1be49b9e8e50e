// SPDX-License-Identifier: Apache-2.0
// A column of one tool: what it is called, when it is shown, and what it shows. Rows of tables and lines of events are
// made of lists of these.
#pragma once

#include "rows/table.hpp"

#include <cstdint>
#include <string_view>

namespace gpusnoop {

enum class Shown : uint8_t { no, json, text, both };

// Of: what it is a value of: a row's key and group, or an event. Context: what is the same for all of them.
template<class Context, class... Of>
struct Field {
    Column column;
    Shown (*shown)(const Context&);
    Cell (*value)(const Of&..., const Context&);
    bool extra = false; // in tables of text when it is asked for (--columns)

    bool is_called(std::string_view name) const { return column.is_called(name); }
};

constexpr bool extra = true;

constexpr Column level(Column column)
{
    column.is_level = true;
    return column;
}

// The column of a field that is shown there.
inline Column shown_column(Column column, Shown where)
{
    column.in_text &= !column.header.empty() && where != Shown::json;
    column.in_json &= !column.key.empty() && where != Shown::text;
    return column;
}

} // namespace gpusnoop
