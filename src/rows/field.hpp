// SPDX-License-Identifier: Apache-2.0
// A field of a tool's table or event lines: its column, the outputs that show it, its value, and its description in the
// manual. Tables and event lines are lists of fields.
#pragma once

#include "rows/table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

enum class Shown : uint8_t { no, json, text, both };

// Of: types of the objects from which a value is computed: a row's key and group, or an event. Context: data shared by
// all rows.
template<class Context, class... Of>
struct Field {
    using Value = Cell (*)(const Of&..., const Context&);

    Column column;
    Shown (*shown)(const Context&);
    Value value;
    // description in the manual (`...` is bold); if empty, the previous field's description covers this field too
    std::string_view about = {};
    bool extra = false;         // text tables show it only if requested with --columns
    Value text_value = nullptr; // value in text output; null: the same as `value`
    Unit text_unit = Unit::text;

    // Copy of the field that has another value and unit in text.
    constexpr Field in_text(Value form, Unit unit = Unit::text) const
    {
        Field field = *this;
        field.text_value = form;
        field.text_unit = unit;
        return field;
    }

    bool is_called(std::string_view name) const { return column.is_called(name); }
};

constexpr bool extra = true;

constexpr Column level(Column column)
{
    column.is_level = true;
    return column;
}

// Concatenates lists of fields.
template<class F, size_t... N>
constexpr auto fields_of(const F (&... parts)[N])
{
    std::array<F, (N + ...)> all{};
    size_t at = 0;
    const auto append = [&](const auto& part) {
        for (const F& field : part)
            all[at++] = field;
    };
    (append(parts), ...);
    return all;
}

// Hides a column in the outputs that `where` excludes, in text if it has no header, and in JSON if it has no key.
inline Column shown_column(Column column, Shown where)
{
    column.in_text &= !column.header.empty() && where != Shown::json;
    column.in_json &= !column.key.empty() && where != Shown::text;
    return column;
}

// A column that this run shows, and its field.
template<class Context, class... Of>
struct ShownField {
    const Field<Context, Of...>* field;
    Column column;
    typename Field<Context, Of...>::Value value;
};

// Adds the columns of a field: none, one, or two if text and JSON show different values. In that case the text column
// has no key, because recordings contain only the JSON value.
template<class Context, class... Of>
void add_shown(std::vector<ShownField<Context, Of...>>& to, const Field<Context, Of...>& field, Shown where)
{
    if (!field.text_value) {
        if (where != Shown::no)
            to.push_back({&field, shown_column(field.column, where), field.value});
        return;
    }
    Column text = field.column, json = field.column;
    text.key = json.header = {};
    text.unit = field.text_unit;
    if (where == Shown::text || where == Shown::both)
        to.push_back({&field, shown_column(text, Shown::text), field.text_value});
    if (where == Shown::json || where == Shown::both)
        to.push_back({&field, shown_column(json, Shown::json), field.value});
}

// Returns the field's column, with the data that --columns help and --columns json print.
template<class Context, class... Of>
Column documented(const Field<Context, Of...>& field)
{
    Column column = field.column;
    column.about = field.about;
    column.on_request = field.extra;
    return column;
}

template<class Fields>
std::vector<Column> documented_columns(const Fields& fields)
{
    std::vector<Column> all;
    for (const auto& field : fields)
        all.push_back(documented(field));
    return all;
}

// Choice of the columns in a text table (--columns).
class ColumnChoice {
public:
    // names: column headers or JSON keys. Plain names select exactly these columns. +NAME adds a column to the default
    // ones, and -NAME removes one. The names must outlive the object.
    explicit ColumnChoice(std::span<const std::string> names) : names_(names) {}

    bool shows(const Column& column, bool usually) const;

    // Calls the function with each name that the user wants to see: NAME and +NAME, but not -NAME. The "+" is removed.
    template<class Function>
    void for_each_wanted(Function function) const
    {
        for (const std::string_view name : names_)
            if (!name.starts_with('-'))
                function(name.substr(name.starts_with('+')));
    }

private:
    std::span<const std::string> names_;
};

// Columns that --columns cannot select, such as the columns of event lines. of: kind of output, such as "line".
struct OtherColumns {
    std::string_view of;
    std::vector<Column> columns;
};

// Throws UsageError for an unknown name. For "help", throws Answer with a readable list. For "json", throws Answer with
// all columns and `others` as JSON, from which scripts/man-page generates the manual.
void check_columns(std::span<const std::string> names, std::span<const Column> columns,
                   std::span<const OtherColumns> others);

// Throws UsageError if `sort` is neither a header nor a JSON key.
void check_sort(std::span<const Column> columns, const std::string& sort);

} // namespace gpusnoop
