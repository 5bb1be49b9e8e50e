// SPDX-License-Identifier: Apache-2.0
// Prints a tool's table, which is a list of fields. Key needs a member `WhoKey who`, Group a member `WhoSeen who`, and
// Context the members `options`, `processes`, `seconds` and `who()`.
#pragma once

#include "base/options.hpp"
#include "base/text.hpp"
#include "names/code_places.hpp"
#include "rows/call_view.hpp"
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

// Shown in text if rows are grouped by this dimension, and always in JSON.
template<class Context, bool WhoView::*dimension>
Shown where_grouped(const Context& c)
{
    return c.who().*dimension ? Shown::both : Shown::json;
}

template<class Context>
Shown json_only(const Context&)
{
    return Shown::json;
}

template<class Context>
Shown text_only(const Context&)
{
    return Shown::text;
}

// Shown if this member of the tool's settings is set.
template<class Context, auto member, Shown where = Shown::both>
Shown where_set(const Context& c)
{
    return c.settings.*member ? where : Shown::no;
}

// Hidden with -x (--failed), which counts only failed calls.
template<class Context, Shown where = Shown::both>
Shown unless_failed(const Context& c)
{
    return c.options.failed_only ? Shown::no : where;
}

// Like unless_failed, but shown in text only if the context's member some_row is true, which means that some row has a
// value.
template<class Context, auto some_row>
Shown unless_failed_if(const Context& c)
{
    return c.options.failed_only ? Shown::no : c.*some_row ? Shown::both : Shown::json;
}

template<class Context>
Cell per_second(uint64_t n, const Context& c)
{
    return static_cast<double>(n) / c.seconds;
}

// Computes a field: the value of the group's member `member`.
template<auto member>
constexpr auto count_of = [](const auto&, const auto& g, const auto&) { return Cell(uint64_t{g.*member}); };

// Computes a field: the value of the group's member `member`, per second.
template<auto member>
constexpr auto rate_of = [](const auto&, const auto& g, const auto& c) { return per_second(g.*member, c); };

// Computes a field for text output: the value of the group's member `member`, per second, rounded down to a whole
// number.
template<auto member>
constexpr auto whole_rate_of = [](const auto&, const auto& g, const auto& c) {
    return Cell(static_cast<uint64_t>(static_cast<double>(g.*member) / c.seconds));
};

// `part` in percent of `whole`; empty if `whole` is 0.
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
     where_grouped<C, &WhoView::pid>,
     [](const K&, const G& g, const C&) { return pid_cell(g.who); },
     about_pid},
    {{"NSPID", "ns_pid", Unit::count, 7},
     [](const C& c) { return c.who().pid && c.who().owner ? Shown::both : Shown::json; },
     [](const K&, const G& g, const C& c) { return ns_pid_cell(g.who, c.processes); },
     about_ns_pid},
    {{"", "process_start_ns", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C& c) { return start_cell(g.who, c.processes); },
     "Start time of the process, in nanoseconds since boot. It distinguishes two processes with the same pid."},
    {{"TID", "tid", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(uint64_t{k.who.tid}); },
     about_tid},
    {{"COMM", "comm", Unit::text, 15},
     [](const C& c) { return c.who().thread                ? Shown::text
                             : c.who().pid || c.who().comm ? Shown::both
                                                           : Shown::json; },
     [](const K& k, const G& g, const C& c) {
         return c.who().thread ? thread_comm_cell(k.who, g.who, c.processes) : comm_cell(k.who, g.who, c.processes);
     },
     "Name of the process. In rows by thread, COMM is the name of the thread; in JSON, thread_comm is the name of the "
     "thread, and comm the name of the process."},
    // In a table by thread, the text column COMM contains thread names, but in JSON `comm` is always the name of the
    // process.
    {{"", "comm", Unit::text},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::no; },
     [](const K& k, const G& g, const C& c) { return comm_cell(k.who, g.who, c.processes); }},
    {{"", "thread_comm", Unit::text},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::no; },
     [](const K& k, const G& g, const C& c) { return thread_comm_cell(k.who, g.who, c.processes); }},
    {{"", "command_line", Unit::text},
     [](const C& c) { return c.options.writes_json() ? Shown::json : Shown::no; },
     [](const K&, const G& g, const C& c) { return command_line_cell(g.who, c.processes); },
     "Command line of the process; only in recordings, and only if a row belongs to one process."},
    {{"", "processes", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.who.images.size()}); },
     "Number of processes that the row covers."},
    {{"NAMESPACE", "", Unit::text, 24},
     [](const C& c) { return c.who().pod_namespace ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::pod_namespace>,
     "NAMESPACE is the pod's namespace. POD is the pod as NAMESPACE/NAME, or its uid if the name is unknown."},
    {{"POD", "", Unit::text, 40},
     [](const C& c) { return c.who().pod ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::pod_text>},
    {{"CONTAINER", "", Unit::text, 40},
     [](const C& c) { return c.who().container ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::container_text>,
     about_owner},
    {{"OWNER", "", Unit::text, 40},
     [](const C& c) { return c.who().owner && !c.who().container ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::text>},
    {{"CGROUP", "", Unit::text, 60},
     [](const C& c) { return c.who().cgroup ? Shown::text : Shown::no; },
     owner_value<K, G, C, OwnerPart::cgroup_text>,
     "Path of the cgroup, with shortened ids. Only the end of a long path is shown."},
};

template<class K, class G, class C>
inline const auto owner_fields = []<size_t... I>(std::index_sequence<I...>)
{
    return std::array{Field<C, K, G>{{"", owner_keys[I].key, owner_keys[I].unit},
                                     json_only<C>,
                                     owner_value<K, G, C, owner_keys[I].part>,
                                     I ? "" : about_owner_keys}...};
}
(std::make_index_sequence<std::size(owner_keys)>());

// True for keys of rows that count probed calls. Such rows can be grouped by the place in the program that made the
// call.
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

template<class K, class G, class C>
inline const Field<C, K, G> place_fields[] = {
    {{"LINE", "", Unit::text, 36},
     [](const C& c) { return c.settings.view.line ? Shown::text : Shown::no; },
     [](const K& k, const G&, const C& c) { return text_if_any(line_text(place_of(k, c))); },
     "Place in the program that makes the calls; with `--by line` or `--by function`. This is the innermost Python "
     "frame whose file is not in a folder `site-packages` or `dist-packages`, not in Python's own library, and not "
     "excluded by `--skip`; if there is none, the innermost Python frame. Without Python, the place is the function "
     "that calls CUDA, and its file is the library or program."},
    {{"CODE", "", Unit::text, 36},
     [](const C& c) { return c.settings.view.code && !c.settings.view.line ? Shown::text : Shown::no; },
     [](const K& k, const G&, const C& c) { return text_if_any(line_text(place_of(k, c))); }},
    {{"", "code_file", Unit::text},
     where_lines<C>,
     [](const K& k, const G&, const C& c) { return text_if_any(place_of(k, c).file); }},
    {{"", "code_line", Unit::count},
     [](const C& c) { return c.settings.view.line ? Shown::json : Shown::no; },
     [](const K& k, const G&, const C& c) { return cell_if(place_of(k, c).line); }},
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

// Checks --columns and -s. Throws UsageError for an unknown header or JSON key. For --columns help and --columns json,
// throws Answer with the list of columns.
template<class K, class G, class C>
void check_fields(std::span<const Field<C, K, G>> own, const Options& options, const std::string& sort,
                  const std::vector<OtherColumns>& others)
{
    std::vector<Column> columns;
    for (const auto* field : all_fields(own))
        columns.push_back(documented(*field));
    check_columns(options.columns, columns, others);
    check_sort(columns, sort);
}

// Returns the stack frames to print below a row; none for most views.
template<class Key, class Group>
using FramesOf = std::function<Frames(const Key&, const Group&)>;

// Prints the groups as one table in descending order of the column `sort`, or of their weight if that column is not
// shown. If `frames` is empty, uses the context's frames.
template<class K, class G, class C>
void print_table(Output& output, std::span<const Field<C, K, G>> own, const std::map<K, G>& groups, const C& context,
                 uint64_t wall_ns, const std::string& sort, const std::function<double(const G&)>& weight,
                 const FramesOf<K, G>& frames = {})
{
    std::vector<ShownField<C, K, G>> shown;
    std::vector<Column> columns;
    const ColumnChoice choice(context.options.columns);
    const auto all = all_fields(own);
    for (const auto* field : all)
        add_shown(shown, *field, field->shown(context));
    for (const auto& [field, of, value] : shown) {
        columns.push_back(of);
        columns.back().in_text = !of.header.empty() && choice.shows(field->column, of.in_text && !field->extra);
    }
    // Columns that the user requested but that this run does not measure are shown with empty cells.
    const size_t measured = shown.size();
    choice.for_each_wanted([&](std::string_view name) {
        for (size_t i = 0; i < columns.size(); i++)
            if (columns[i].in_text && shown[i].field->is_called(name))
                return;
        const auto one = std::ranges::find_if(
            all, [&](const auto* field) { return field->is_called(name) && !field->column.header.empty(); });
        if (one == all.end())
            return;
        shown.push_back({*one, (*one)->column, nullptr});
        columns.push_back((*one)->column);
        columns.back().in_text = true;
        columns.back().in_json = false;
    });
    const auto cell = [&](size_t field, const K& key, const G& group, bool sampled) {
        const Cell value = field < measured ? shown[field].value(key, group, context) : Cell();
        return sampled && columns[field].of_calls ? estimate_of(value) : value;
    };
    struct Line { // has no cells, to save memory: there may be tens of thousands of lines
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
            if (columns[i].is_called(sort))
                line.order = sort_value(cell(i, key, group, sampled));
        lines.push_back(line);
    }
    std::ranges::stable_sort(lines, std::greater<>(), &Line::order);
    const auto frames_below = [&](const K& key, const G& group) {
        if constexpr (requires { context.frames(key, group.who); })
            if (!frames && context.frames)
                return context.frames(key, group.who);
        return frames ? frames(key, group) : Frames();
    };
    output.begin_table(columns, wall_ns, static_cast<uint64_t>(std::llround(context.seconds * 1e9)));
    for (size_t number = 0; number < lines.size(); number++) {
        Output* const place = output.place_of_row(number, context.options.rows);
        if (!place)
            break;
        const Line& line = lines[number];
        Row row;
        for (size_t i = 0; i < shown.size(); i++)
            row.push_back(cell(i, *line.key, *line.group, line.sampled));
        place->row(columns, row, frames_below(*line.key, *line.group));
    }
}

} // namespace gpusnoop
