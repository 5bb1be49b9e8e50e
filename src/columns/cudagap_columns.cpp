// SPDX-License-Identifier: Apache-2.0
#include "columns/cudagap_columns.hpp"

#include "columns/cudagap_parts.hpp"

namespace gpusnoop::cudagap {
namespace {

using K = TimeKey;
using G = TimeGroup;
using C = Context;

constexpr const auto& names = part_names;

// A share of the time of all threads of the row.
template<time_part part>
constexpr Field<C, K, G> share_field = {
    {names[part].header, "", Unit::percent, static_cast<int16_t>(names[part].header.size())},
    [](const C& c) { return c.parts[part] ? Shown::text : Shown::no; },
    [](const K&, const G& g, const C&) { return share(g.sums.ns[part], g.sums.wall_ns); }};

template<time_part part>
constexpr Field<C, K, G> sum_field = {{"", names[part].key, Unit::count},
                                      json_only<C>,
                                      [](const K&, const G& g, const C&) { return Cell(g.sums.ns[part]); }};

const Field<C, K, G> fields[] = {
    {{"THREADS", "threads", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); }},
    {{"WALL(s)", "wall_ns", Unit::seconds, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.wall_ns); }},
    share_field<TIME_LAUNCH>,
    share_field<TIME_COPY>,
    share_field<TIME_WAIT>,
    share_field<TIME_MEMORY>,
    share_field<TIME_CALL>,
    share_field<TIME_CPU>,
    share_field<TIME_RUNQ>,
    share_field<TIME_THROTTLED>,
    share_field<TIME_LOCK>,
    share_field<TIME_POLL>,
    share_field<TIME_PIPE>,
    share_field<TIME_SOCKET>,
    share_field<TIME_DISK>,
    share_field<TIME_FAULT>,
    share_field<TIME_SLEEP>,
    share_field<TIME_DRIVER>,
    share_field<TIME_CHILD>,
    share_field<TIME_OTHER>,
    {{"SWITCH/s", "", Unit::rate, 8},
     always<C>,
     [](const K&, const G& g, const C& c) { return per_second(g.sums.blocked + g.sums.preempted, c); }},
    sum_field<TIME_LAUNCH>,
    sum_field<TIME_COPY>,
    sum_field<TIME_WAIT>,
    sum_field<TIME_MEMORY>,
    sum_field<TIME_CALL>,
    sum_field<TIME_CPU>,
    sum_field<TIME_RUNQ>,
    sum_field<TIME_THROTTLED>,
    sum_field<TIME_LOCK>,
    sum_field<TIME_POLL>,
    sum_field<TIME_PIPE>,
    sum_field<TIME_SOCKET>,
    sum_field<TIME_DISK>,
    sum_field<TIME_FAULT>,
    sum_field<TIME_SLEEP>,
    sum_field<TIME_DRIVER>,
    sum_field<TIME_CHILD>,
    sum_field<TIME_OTHER>,
    {{"", "other_syscall", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C&) { return g.other_syscall ? Cell(uint64_t{*g.other_syscall}) : Cell(); }},
    {{"BLOCKED", "switches_blocked", Unit::count, 8},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.blocked); },
     extra},
    {{"PREEMPTED", "switches_preempted", Unit::count, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.preempted); },
     extra},
    {{"MAJFLT", "major_faults", Unit::count, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.faults); },
     extra},
};

// Those that some row has 1 % of or more, and those that are asked for.
std::bitset<TIME_PARTS> parts_to_show(const std::map<TimeKey, TimeGroup>& groups, const Context& context)
{
    constexpr uint64_t shown_of = 100; // 1 %
    std::bitset<TIME_PARTS> parts;
    for (size_t part = 0; part < TIME_PARTS; part++)
        parts[part] = std::ranges::any_of(groups, [part](const auto& group) {
            const TimeSums& sums = group.second.sums;
            return sums.ns[part] && sums.ns[part] * shown_of >= sums.wall_ns;
        });
    const auto show = [&](std::string_view name) {
        if (const auto named = std::ranges::find(names, name, &PartName::header); named != names.end())
            parts.set(static_cast<size_t>(named - names.begin()));
    };
    ColumnChoice(context.options.columns).for_each_wanted(show);
    show(context.settings.sort);
    return parts;
}

} // namespace

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort, {{"line", columns_of_lines(line_fields())}});
}

void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns)
{
    Context shown = context;
    shown.parts = parts_to_show(groups, context);
    print_table<K, G, C>(
        output, fields, groups, shown, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.sums.wall_ns); },
        [](const K&, const G&) { return std::vector<std::string>(); });
}

} // namespace gpusnoop::cudagap
