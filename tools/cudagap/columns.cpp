// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/columns.hpp"

#include "tools/cudagap/parts.hpp"

#include <fmt/ranges.h>

namespace gpusnoop::cudagap {
namespace {

using K = TimeKey;
using G = TimeGroup;
using C = Context;

constexpr const auto& names = time_part_names;

// A share of the time of all threads of the row.
template<time_part part>
constexpr Field<C, K, G> share_field = {
    {names[part].header, "", Unit::percent, static_cast<int16_t>(names[part].header.size())},
    [](const C& c) { return c.parts[part] ? Shown::text : Shown::no; },
    [](const K&, const G& g, const C&) { return share(g.sums.ns[part], g.sums.wall_ns); }};

// Where switches are not followed, there are but the parts in calls, and what is outside of them.
constexpr bool is_call(size_t part)
{
    return part >= TIME_LAUNCH && part <= TIME_CALL;
}

template<time_part part>
constexpr Field<C, K, G> sum_field = {{"", names[part].key, Unit::count},
                                      [](const C& c) {
                                          return is_told(part, c.settings) && (!c.settings.cheap || is_call(part))
                                                     ? Shown::json
                                                     : Shown::no;
                                      },
                                      [](const K&, const G& g, const C&) { return Cell(g.sums.ns[part]); }};

template<Shown where>
Shown if_cheap(const C& c)
{
    return c.settings.cheap ? where : Shown::no;
}

Shown unless_cheap(const C& c)
{
    return c.settings.cheap ? Shown::no : Shown::both;
}

Cell if_known(const G& g, uint64_t of)
{
    return g.cpu.wall_ns ? Cell(of) : Cell();
}

template<class Value>
Cell cell(const std::optional<Value>& value)
{
    return value ? Cell(*value) : Cell();
}

Cell cell(unsigned cpus)
{
    return cpus ? Cell(uint64_t{cpus}) : Cell();
}

Cell cell(const std::set<unsigned>& nodes)
{
    return nodes.empty() ? Cell() : Cell(fmt::format("{}", fmt::join(nodes, ",")));
}

// Of rows of one process.
template<auto member>
Cell around(const K&, const G& g, const C& c)
{
    const Circumstances* of = g.who.images.size() == 1 ? c.around.of(*g.who.images.begin()) : nullptr;
    return of ? cell(of->*member) : Cell();
}

template<Pressure of>
Cell pressure(const K&, const G& g, const C& c)
{
    const Circumstances* around = g.who.images.size() == 1 ? c.around.of(*g.who.images.begin()) : nullptr;
    return around ? cell(around->stalled_percent[of]) : Cell();
}

using A = Circumstances;

const Field<C, K, G> fields[] = {
    {{"THREADS", "threads", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); }},
    vendors_field<K, G, C>,
    {{"WALL(s)", "wall_ns", Unit::seconds, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.wall_ns); }},
    share_field<TIME_LAUNCH>,
    share_field<TIME_COPY>,
    share_field<TIME_WAIT>,
    share_field<TIME_MEMORY>,
    share_field<TIME_CALL>,
    {{"ONCPU%", "", Unit::percent, 6},
     if_cheap<Shown::text>,
     [](const K&, const G& g, const C&) { return share(g.cpu.used_ns, g.cpu.wall_ns); }},
    {{"READY%", "", Unit::percent, 6},
     if_cheap<Shown::text>,
     [](const K&, const G& g, const C&) { return share(g.cpu.ready_ns, g.cpu.wall_ns); }},
    {{"OFFCPU%", "", Unit::percent, 7},
     if_cheap<Shown::text>,
     [](const K&, const G& g, const C&) { return share(g.cpu.off_ns(), g.cpu.wall_ns); }},
    share_field<TIME_CPU>,
    share_field<TIME_RUNQ>,
    share_field<TIME_THROTTLED>,
    share_field<TIME_HARDIRQ>,
    share_field<TIME_SOFTIRQ>,
    share_field<TIME_STOPPED>,
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
     [](const K&, const G& g, const C& c) {
         if (!c.settings.cheap)
             return per_second(g.sums.blocked + g.sums.preempted, c);
         return g.cpu.wall_ns ? per_second(g.cpu.turns, c) : Cell();
     }},
    sum_field<TIME_LAUNCH>,
    sum_field<TIME_COPY>,
    sum_field<TIME_WAIT>,
    sum_field<TIME_MEMORY>,
    sum_field<TIME_CALL>,
    {{"", "outside_ns", Unit::count},
     if_cheap<Shown::json>,
     [](const K&, const G& g, const C&) { return Cell(g.sums.ns[TIME_CPU]); }},
    {{"", "on_cpu_ns", Unit::count},
     if_cheap<Shown::json>,
     [](const K&, const G& g, const C&) { return if_known(g, g.cpu.used_ns); }},
    {{"", "ready_ns", Unit::count},
     if_cheap<Shown::json>,
     [](const K&, const G& g, const C&) { return if_known(g, g.cpu.ready_ns); }},
    {{"", "off_cpu_ns", Unit::count},
     if_cheap<Shown::json>,
     [](const K&, const G& g, const C&) { return if_known(g, g.cpu.off_ns()); }},
    {{"", "known_wall_ns", Unit::count},
     if_cheap<Shown::json>,
     [](const K&, const G& g, const C&) { return Cell(g.cpu.wall_ns); }},
    sum_field<TIME_CPU>,
    sum_field<TIME_RUNQ>,
    sum_field<TIME_THROTTLED>,
    sum_field<TIME_HARDIRQ>,
    sum_field<TIME_SOFTIRQ>,
    sum_field<TIME_STOPPED>,
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
     unless_cheap,
     [](const K&, const G& g, const C&) { return Cell(g.sums.blocked); },
     extra},
    {{"PREEMPTED", "switches_preempted", Unit::count, 9},
     unless_cheap,
     [](const K&, const G& g, const C&) { return Cell(g.sums.preempted); },
     extra},
    {{"MAJFLT", "major_faults", Unit::count, 7},
     unless_cheap,
     [](const K&, const G& g, const C&) { return Cell(g.sums.faults); },
     extra},
    {{"AROUND(s)", "around_ns", Unit::seconds, 9}, always<C>, around<&A::covered_ns>, extra},
    {{"QUOTA", "quota_cpus", Unit::rate, 6}, always<C>, around<&A::quota_cpus>, extra},
    {{"THROTTLES", "throttles", Unit::count, 9}, always<C>, around<&A::throttles>, extra},
    {{"", "cgroup_throttled_ns", Unit::count}, json_only<C>, around<&A::throttled_ns>},
    {{"PSICPU%", "pressure_cpu_percent", Unit::percent, 7}, always<C>, pressure<PRESSURE_CPU>, extra},
    {{"PSIIO%", "pressure_io_percent", Unit::percent, 6}, always<C>, pressure<PRESSURE_IO>, extra},
    {{"PSIMEM%", "pressure_memory_percent", Unit::percent, 7}, always<C>, pressure<PRESSURE_MEMORY>, extra},
    {{"", "pressure_of_machine", Unit::count}, json_only<C>, around<&A::of_machine>},
    {{"CPUS", "allowed_cpus", Unit::count, 4}, always<C>, around<&A::allowed_cpus>, extra},
    {{"", "process_threads", Unit::count}, json_only<C>, around<&A::threads>},
    {{"", "process_major_faults", Unit::count}, json_only<C>, around<&A::major_faults>},
    {{"READ", "read_bytes", Unit::bytes, 7}, always<C>, around<&A::read_bytes>, extra},
    {{"WRITTEN", "written_bytes", Unit::bytes, 7}, always<C>, around<&A::written_bytes>, extra},
    {{"SWAP", "swapped_bytes", Unit::bytes, 7}, always<C>, around<&A::swapped_bytes>, extra},
    {{"NODE", "numa_nodes", Unit::text, 4}, always<C>, around<&A::nodes>, extra},
    {{"GPUNODE", "gpu_numa_nodes", Unit::text, 7}, always<C>, around<&A::gpu_nodes>, extra},
};

// Those that some row has 1 % of or more, and those that are asked for.
std::bitset<TIME_PARTS> parts_to_show(const std::map<TimeKey, TimeGroup>& groups, const Context& context)
{
    constexpr uint64_t shown_of = 100; // 1 %
    std::bitset<TIME_PARTS> parts;
    for (size_t part = 0; part < TIME_PARTS; part++)
        parts[part] =
            (!context.settings.cheap || is_call(part)) && std::ranges::any_of(groups, [part](const auto& group) {
                const TimeSums& sums = group.second.sums;
                return sums.ns[part] && sums.ns[part] * shown_of >= sums.wall_ns;
            });
    const auto show = [&](std::string_view name) {
        const auto named = std::ranges::find(names, name, &TimePartName::header);
        const auto part = static_cast<size_t>(named - names.begin());
        if (named != names.end() && is_told(part, context.settings) && (!context.settings.cheap || is_call(part)))
            parts.set(part);
    };
    ColumnChoice(context.options.columns).for_each_wanted(show);
    show(context.settings.sort);
    return parts;
}

} // namespace

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort,
                                    {{"line", columns_of_lines(line_fields())},
                                     {"stack", columns_of_stacks()},
                                     {"file", columns_of_files()},
                                     {"connection", columns_of_peers()}});
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
