// SPDX-License-Identifier: Apache-2.0
// One figure of a tool: its column, when text and JSON show it, its value, and its sentence in the manual. Tables and
// lines of events are lists of these.
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

// Of: the types that a value is computed from: a row's key and group, or an event. Context: common to all of them.
template<class Context, class... Of>
struct Field {
    using Value = Cell (*)(const Of&..., const Context&);

    Column column;
    Shown (*shown)(const Context&);
    Value value;
    std::string_view about = {}; // for the manual; `...` is bold. Empty: the sentence of the field before covers both
    bool extra = false;          // in tables of text only on request (--columns)
    Value text_value = nullptr;  // text shows this in place of the value
    Unit text_unit = Unit::text;

    // The same figure in another form for people.
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

// One list of fields from several.
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

// The column of a field that is shown there.
inline Column shown_column(Column column, Shown where)
{
    column.in_text &= !column.header.empty() && where != Shown::json;
    column.in_json &= !column.key.empty() && where != Shown::text;
    return column;
}

// A column of this run, with the field that it is of.
template<class Context, class... Of>
struct ShownField {
    const Field<Context, Of...>* field;
    Column column;
    typename Field<Context, Of...>::Value value;
};

// Adds the columns of a field: none, one, or one each for text and JSON if the two differ. That of text then has no
// key, since a recording has no such value under it.
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

// The column with its sentence, and whether it is among the usual ones: for --columns.
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

// Which columns a table of text shows: the usual ones, or what --columns asks for.
class ColumnChoice {
public:
    // Headers or JSON keys: these columns alone; or more (+NAME) or fewer (-NAME) than the usual ones. They must
    // outlive the object.
    explicit ColumnChoice(std::span<const std::string> names) : names_(names) {}

    bool shows(const Column& column, bool usually) const;

    // The names of columns that are asked for, and not taken off.
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

// Columns that there is no choice of: those of lines, "line" for a call's.
struct OtherColumns {
    std::string_view of;
    std::vector<Column> columns;
};

// Throws UsageError if a name is of no column, and Answer if it is "help", with a list of them for people, or "json",
// with all of them, the others too, from which scripts/man-page writes the manual.
void check_columns(std::span<const std::string> names, std::span<const Column> columns,
                   std::span<const OtherColumns> others);

// Throws UsageError if no column has the name, a header or a JSON key, to sort by.
void check_sort(std::span<const Column> columns, const std::string& sort);

} // namespace gpusnoop
