// SPDX-License-Identifier: Apache-2.0
// A field of a tool: its column, when text and JSON show it, its value, and its sentence in the manual. Tables and
// event lines are lists of fields.
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

// Of: types that the value is computed from: a row's key and group, or an event. Context: shared by all rows.
template<class Context, class... Of>
struct Field {
    using Value = Cell (*)(const Of&..., const Context&);

    Column column;
    Shown (*shown)(const Context&);
    Value value;
    std::string_view about = {}; // for the manual; `...` is bold. Empty: the previous field's sentence covers both
    bool extra = false;          // text tables show it only on request (--columns)
    Value text_value = nullptr;  // text shows this instead of the value
    Unit text_unit = Unit::text;

    // Copy of the field that text shows in another form.
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

// Restricts a column to the outputs that show it.
inline Column shown_column(Column column, Shown where)
{
    column.in_text &= !column.header.empty() && where != Shown::json;
    column.in_json &= !column.key.empty() && where != Shown::text;
    return column;
}

// A column of this run, and its field.
template<class Context, class... Of>
struct ShownField {
    const Field<Context, Of...>* field;
    Column column;
    typename Field<Context, Of...>::Value value;
};

// Adds the columns of a field: none, one, or one each for text and JSON if the two differ. The text column then has no
// key, as recordings contain only the JSON value.
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

// The column with the data that --columns help and --columns json print.
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

// --columns: the columns that a text table shows.
class ColumnChoice {
public:
    // names: headers or JSON keys. NAME: only these columns; +NAME, -NAME: add to or remove from the default ones. Must
    // outlive the object.
    explicit ColumnChoice(std::span<const std::string> names) : names_(names) {}

    bool shows(const Column& column, bool usually) const;

    // Calls the function with each NAME or +NAME.
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

// Columns that --columns cannot select, such as those of event lines (`of`: "line").
struct OtherColumns {
    std::string_view of;
    std::vector<Column> columns;
};

// Throws UsageError for an unknown name. Throws Answer for "help", with a readable list, and for "json", with all
// columns including the others, from which scripts/man-page generates the manual.
void check_columns(std::span<const std::string> names, std::span<const Column> columns,
                   std::span<const OtherColumns> others);

// Throws UsageError if `sort` is neither a header nor a JSON key.
void check_sort(std::span<const Column> columns, const std::string& sort);

} // namespace gpusnoop
