// SPDX-License-Identifier: Apache-2.0
// A tool's table as a list of fields: what each is called, when it is shown, and what it shows. A tool has a Key with a
// `WhoKey who`, a Group with a `WhoSeen who`, and a Context with `options`, `processes`, `seconds` and `who()`.
#pragma once

#include "base/options.hpp"
#include "base/text.hpp"
#include "names/code_places.hpp"
#include "rows/call_view.hpp"
#include "rows/column_choice.hpp"
#include "rows/field.hpp"
#include "rows/output.hpp"
#include "rows/who.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

template<class Context>
Shown always(const Context&)
{
    return Shown::both;
}

// In the text where it is told apart, in JSON wherever it is known.
template<class Context, bool WhoView::*dimension>
Shown where_told_apart(const Context& c)
{
    return c.who().*dimension ? Shown::both : Shown::json;
}

template<class Context>
Shown json_only(const Context&)
{
    return Shown::json;
}

template<class Context>
Cell per_second(uint64_t n, const Context& c)
{
    return static_cast<double>(n) / c.seconds;
}

// In percent. Of nothing there is no share.
inline Cell share(uint64_t part, uint64_t whole)
{
    return whole ? Cell(100.0 * static_cast<double>(part) / static_cast<double>(whole)) : Cell();
}

template<class Key, class Group, class Context, OwnerPart part>
Cell owner_value(const Key&, const Group& group, const Context&)
{
    return owner_cell(group.who, part);
}

template<class K, class G, class C>
inline const Field<C, K, G> who_fields[] = {
    {{"PID", "pid", Unit::count, 7},
     where_told_apart<C, &WhoView::pid>,
     [](const K&, const G& g, const C&) { return pid_cell(g.who); }},
    {{"NSPID", "ns_pid", Unit::count, 7},
     [](const C& c) { return c.who().pid && c.who().owner ? Shown::both : Shown::json; },
     [](const K&, const G& g, const C& c) { return ns_pid_cell(g.who, c.processes); }},
    {{"", "process_start_ns", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C& c) { return start_cell(g.who, c.processes); }},
    {{"TID", "tid", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(uint64_t{k.who.tid}); }},
    {{"COMM", "comm", Unit::text, 15},
     [](const C& c) { return c.who().thread                ? Shown::text
                             : c.who().pid || c.who().comm ? Shown::both
                                                           : Shown::json; },
     [](const K& k, const G& g, const C& c) {
         return c.who().thread ? thread_comm_cell(k.who, g.who, c.processes) : comm_cell(k.who, g.who, c.processes);
     }},
    // A table of threads has their names in the column; in JSON, `comm` is the process's in any table.
    {{"", "comm", Unit::text},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::no; },
     [](const K& k, const G& g, const C& c) { return comm_cell(k.who, g.who, c.processes); }},
    {{"", "thread_comm", Unit::text},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::no; },
     [](const K& k, const G& g, const C& c) { return thread_comm_cell(k.who, g.who, c.processes); }},
    {{"", "command_line", Unit::text},
     [](const C& c) { return c.options.writes_json() ? Shown::json : Shown::no; },
     [](const K&, const G& g, const C& c) { return command_line_cell(g.who, c.processes); }},
    {{"", "processes", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.who.images.size()}); }},
    {{"NAMESPACE", "", Unit::text, 24},
     [](const C& c) { return c.who().pod_namespace ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::pod_namespace>},
    {{"POD", "", Unit::text, 40},
     [](const C& c) { return c.who().pod ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::pod_text>},
    {{"CONTAINER", "", Unit::text, 40},
     [](const C& c) { return c.who().container ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::container_text>},
    {{"OWNER", "", Unit::text, 40},
     [](const C& c) { return c.who().owner && !c.who().container ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::text>},
    {{"CGROUP", "", Unit::text, 60},
     [](const C& c) { return c.who().cgroup ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::cgroup_text>},
};

template<class K, class G, class C>
inline const auto owner_fields = []<size_t... I>(std::index_sequence<I...>)
{
    return std::array{Field<C, K, G>{
        {"", owner_keys[I].key, owner_keys[I].unit}, json_only<C>, owner_value<K, G, C, owner_keys[I].part>}...};
}
(std::make_index_sequence<std::size(owner_keys)>());

// Of calls: where in the program they come from.
template<class K>
concept HasPlace = K::has_place;

template<class C>
Shown where_lines(const C& c)
{
    return c.settings.view.line || c.settings.view.code ? Shown::json : Shown::no;
}

template<class K, class C>
CodePlace place_of(const K& key, const C& c)
{
    const CallView& view = c.settings.view;
    return view.places && key.place >= 0 ? view.places->place(key.place) : CodePlace();
}

inline Cell text_if_any(std::string text)
{
    return text.empty() ? Cell() : Cell(std::move(text));
}

template<class K, class G, class C>
inline const Field<C, K, G> place_fields[] = {
    {{"LINE", "", Unit::text, 36},
     [](const C& c) { return c.settings.view.line ? Shown::text : Shown::no; },
     [](const K& k, const G&, const C& c) { return text_if_any(line_text(place_of(k, c))); }},
    {{"CODE", "", Unit::text, 36},
     [](const C& c) { return c.settings.view.code && !c.settings.view.line ? Shown::text : Shown::no; },
     [](const K& k, const G&, const C& c) { return text_if_any(line_text(place_of(k, c))); }},
    {{"", "code_file", Unit::text},
     where_lines<C>,
     [](const K& k, const G&, const C& c) { return text_if_any(place_of(k, c).file); }},
    {{"", "code_line", Unit::count},
     [](const C& c) { return c.settings.view.line ? Shown::json : Shown::no; },
     [](const K& k, const G&, const C& c) {
         const auto line = place_of(k, c).line;
         return line ? Cell(*line) : Cell();
     }},
    {{"", "code_function", Unit::text},
     where_lines<C>,
     [](const K& k, const G&, const C& c) { return text_if_any(place_of(k, c).function); }},
};

template<class K, class G, class C>
std::vector<const Field<C, K, G>*> all_fields(std::span<const Field<C, K, G>> own)
{
    std::vector<const Field<C, K, G>*> all;
    for (const auto& field : who_fields<K, G, C>)
        all.push_back(&field);
    for (const auto& field : owner_fields<K, G, C>)
        all.push_back(&field);
    if constexpr (HasPlace<K>)
        for (const auto& field : place_fields<K, G, C>)
            all.push_back(&field);
    for (const auto& field : own)
        all.push_back(&field);
    return all;
}

// Throws UsageError where no field has the name (header or JSON key) of a column to show or to sort by; Answer where
// the names are asked for.
template<class K, class G, class C>
void check_fields(std::span<const Field<C, K, G>> own, const Options& options, const std::string& sort,
                  const std::vector<OtherColumns>& others)
{
    const auto fields = all_fields(own);
    std::vector<ColumnOnOffer> columns;
    for (const auto* field : fields)
        columns.push_back({field->column, !field->extra});
    check_columns(options.columns, columns, others);
    if (std::ranges::any_of(fields, [&](const auto* field) { return field->is_called(sort); }))
        return;
    std::string names;
    for (const auto* field : fields)
        names += fmt::format("{}{}, ", field->column.header.empty() ? "" : fmt::format("{}, ", field->column.header),
                             field->column.key);
    throw UsageError(fmt::format(
        "there is no column '{}' to sort by (-s): give a header of the table, or a key of its rows in --json{}", sort,
        suggestion(sort, names)));
}

// The frames that go below a row; none for most views.
template<class Key, class Group>
using FramesOf = std::function<Frames(const Key&, const Group&)>;

// Prints groups as one table. weight orders them where `sort` is not another column; both downwards.
template<class K, class G, class C>
void print_table(Output& output, std::span<const Field<C, K, G>> own, const std::map<K, G>& groups, const C& context,
                 uint64_t wall_ns, const std::string& sort, const std::function<double(const G&)>& weight,
                 const FramesOf<K, G>& frames)
{
    std::vector<const Field<C, K, G>*> shown;
    std::vector<Column> columns;
    const ColumnChoice choice(context.options.columns);
    for (const auto* field : all_fields(own)) {
        const Shown where = field->shown(context);
        if (where == Shown::no)
            continue;
        Column column = shown_column(field->column, where);
        column.in_text = !column.header.empty() && choice.shows(column, column.in_text && !field->extra);
        shown.push_back(field);
        columns.push_back(column);
    }
    // What this run does not measure is a column of unknowns.
    const size_t measured = shown.size();
    choice.for_each_wanted([&](std::string_view name) {
        if (std::ranges::any_of(columns,
                                [&](const Column& column) { return column.in_text && column.is_called(name); }))
            return;
        const auto all = all_fields(own);
        const auto one = std::ranges::find_if(
            all, [&](const auto* field) { return field->is_called(name) && !field->column.header.empty(); });
        if (one == all.end())
            return;
        shown.push_back(*one);
        columns.push_back((*one)->column);
        columns.back().in_text = true;
        columns.back().in_json = false;
    });
    const auto cell = [&](size_t field, const K& key, const G& group, bool sampled) {
        const Cell value = field < measured ? shown[field]->value(key, group, context) : Cell();
        return sampled && shown[field]->column.of_calls ? estimate_of(value) : value;
    };
    struct Line { // no cells: there may be tens of thousands
        double order;
        const K* key;
        const G* group;
        bool sampled;
    };
    std::vector<Line> lines;
    for (const auto& [key, group] : groups) {
        const bool sampled = context.processes.sampled(group.who.images).has_value();
        Line line{weight(group), &key, &group, sampled};
        for (size_t i = 0; i < measured; i++)
            if (shown[i]->is_called(sort))
                line.order = sort_value(cell(i, key, group, sampled));
        lines.push_back(line);
    }
    std::ranges::stable_sort(lines, std::greater<>(), &Line::order);
    output.begin_table(columns, wall_ns, static_cast<uint64_t>(std::llround(context.seconds * 1e9)));
    for (size_t number = 0; number < lines.size(); number++) {
        Output* const place = output.place_of_row(number, context.options.rows);
        if (!place)
            break;
        const Line& line = lines[number];
        Row row;
        for (size_t i = 0; i < shown.size(); i++)
            row.push_back(cell(i, *line.key, *line.group, line.sampled));
        place->row(columns, row, frames(*line.key, *line.group));
    }
}

} // namespace gpusnoop
