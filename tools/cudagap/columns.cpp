// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/columns.hpp"

#include "tools/cudagap/parts.hpp"

#include <fmt/ranges.h>
#include <utility>

namespace gpusnoop::cudagap {
namespace {

using K = TimeKey;
using G = TimeGroup;
using C = Context;

constexpr const auto& names = time_part_names;

// True for the parts that are time in CUDA calls, such as launches or waits. With --cheap, no other part is
// measured.
constexpr bool is_call(size_t part)
{
    return part >= TIME_LAUNCH && part <= TIME_CALL;
}

constexpr std::string_view about_parts =
    "The parts of the threads' time, explained under `DESCRIPTION`: in text as percentages of WALL(s), in JSON in "
    "nanoseconds. JSON has all parts (the two for interrupts only with `--interrupts`), and they add up to wall_ns. "
    "With `--cheap`, all time, including time in calls, is ONCPU% (on a CPU), READY% (runnable, but waiting for a CPU "
    "or throttled) or OFFCPU% (neither). In JSON, these add up to known_wall_ns, the wall time of the threads whose "
    "schedstat could be read (up to 4096 per report). The kernel updates schedstat at switches and ticks, so it may "
    "lag by some milliseconds.";

// A part as a share of the wall time of all threads of the row.
template<size_t part>
constexpr Field<C, K, G> share_field = {
    {names[part].header, "", Unit::percent, static_cast<int16_t>(names[part].header.size())},
    [](const C& c) { return c.parts[part] ? Shown::text : Shown::no; },
    [](const K&, const G& g, const C&) { return share(g.sums.ns[part], g.sums.wall_ns); },
    part == TIME_LAUNCH ? about_parts : ""};

template<size_t part>
constexpr Field<C, K, G> sum_field = {{"", names[part].key, Unit::count},
                                      [](const C& c) {
                                          return is_shown(part, c.settings) && (!c.settings.cheap || is_call(part))
                                                     ? Shown::json
                                                     : Shown::no;
                                      },
                                      [](const K&, const G& g, const C&) { return Cell(g.sums.ns[part]); }};

// The two fields (share and sum) for each part of time.
template<class Numbers, size_t... part>
struct PartFields;
template<size_t... number, size_t... part>
struct PartFields<std::index_sequence<number...>, part...> {
    static constexpr size_t parts[] = {part...};
    static constexpr Field<C, K, G> all[] = {
        (number % 2 ? sum_field<parts[number / 2]> : share_field<parts[number / 2]>)...};
};
template<size_t... part>
constexpr auto& part_fields = PartFields<std::make_index_sequence<2 * sizeof...(part)>, part...>::all;

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

// A circumstance is shown only if the row has a single process.
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

constexpr auto fields = fields_of<Field<C, K, G>>(
    {
        {{"THREADS", "threads", Unit::count, 7},
         [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
         [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); },
         "Number of threads in the row."},
        vendors_field<K, G, C>,
        {{"WALL(s)", "wall_ns", Unit::seconds, 9},
         always<C>,
         [](const K&, const G& g, const C&) { return Cell(g.sums.wall_ns); },
         "Sum of the threads' wall time in the interval; in JSON, in nanoseconds. A thread counts from its first call "
         "until it exits."},
        {{"", "outside_ns", Unit::count},
         if_cheap<Shown::json>,
         [](const K&, const G& g, const C&) { return Cell(g.sums.ns[TIME_CPU]); },
         "With `--cheap`: time outside of calls. Without `--cheap`, this time is divided into parts such as cpu_ns and "
         "lock_ns."},
        {{"", "other_syscall", Unit::count},
         json_only<C>,
         [](const K&, const G& g, const C&) { return cell_if(g.other_syscall); },
         "Number (specific to the architecture) of the last system call whose time counted as OTHER%, in the thread "
         "with the most OTHER% time."},
    },
    part_fields<TIME_LAUNCH, TIME_COPY, TIME_WAIT, TIME_MEMORY, TIME_CALL>,
    {
        {{"ONCPU%", "", Unit::percent, 6},
         if_cheap<Shown::text>,
         [](const K&, const G& g, const C&) { return share(g.cpu.used_ns, g.cpu.wall_ns); }},
        {{"READY%", "", Unit::percent, 6},
         if_cheap<Shown::text>,
         [](const K&, const G& g, const C&) { return share(g.cpu.ready_ns, g.cpu.wall_ns); }},
        {{"OFFCPU%", "", Unit::percent, 7},
         if_cheap<Shown::text>,
         [](const K&, const G& g, const C&) { return share(g.cpu.off_ns(), g.cpu.wall_ns); }},
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
    },
    part_fields<TIME_CPU, TIME_RUNQ, TIME_THROTTLED, TIME_HARDIRQ, TIME_SOFTIRQ, TIME_STOPPED, TIME_LOCK, TIME_POLL,
                TIME_PIPE, TIME_SOCKET, TIME_DISK, TIME_FAULT, TIME_SLEEP, TIME_DRIVER, TIME_CHILD, TIME_OTHER>,
    {
        {{"SWITCH/s", "", Unit::rate, 8},
         always<C>,
         [](const K&, const G& g, const C& c) {
             if (!c.settings.cheap)
                 return per_second(g.sums.blocked + g.sums.preempted, c);
             return g.cpu.wall_ns ? per_second(g.cpu.turns, c) : Cell();
         },
         "Context switches per second away from the row's threads; with `--cheap`, context switches to them."},
        {{"BLOCKED", "switches_blocked", Unit::count, 8},
         unless_cheap,
         [](const K&, const G& g, const C&) { return Cell(g.sums.blocked); },
         "Voluntary context switches: the thread had to wait.",
         extra},
        {{"PREEMPTED", "switches_preempted", Unit::count, 9},
         unless_cheap,
         [](const K&, const G& g, const C&) { return Cell(g.sums.preempted); },
         "Involuntary context switches: another thread got the CPU, or the quota was used up.",
         extra},
        {{"MAJFLT", "major_faults", Unit::count, 7},
         unless_cheap,
         [](const K&, const G& g, const C&) { return Cell(g.sums.faults); },
         "Page faults that read from disk.",
         extra},
        {{"AROUND(s)", "around_ns", Unit::seconds, 9},
         always<C>,
         around<&A::covered_ns>,
         "Time covered by the columns from QUOTA to GPUNODE, which describe the circumstances of a process. These "
         "columns are empty in rows of several processes. They are read once per report, and cover the time since the "
         "last report. In the first report, they cover the time since the process was first seen, which is at most "
         "about a second after its first call.",
         extra},
        {{"QUOTA", "quota_cpus", Unit::rate, 6},
         always<C>,
         around<&A::quota_cpus>,
         "CPU quota of the process's cgroup, in CPUs: the minimum of the quotas of the cgroup and its ancestors "
         "(cpu.max, or cpu.cfs_quota_us). Empty if there is none.",
         extra},
        {{"THROTTLES", "throttles", Unit::count, 9},
         always<C>,
         around<&A::throttles>,
         "Number of periods in which a quota of the cgroup or of its ancestors was used up (THROTTLES), and time for "
         "which tasks were throttled, summed over CPUs (`cgroup_throttled_ns`). Both are values of the whole cgroup, "
         "not of the process alone.",
         extra},
        {{"", "cgroup_throttled_ns", Unit::count}, json_only<C>, around<&A::throttled_ns>},
        {{"PSICPU%", "pressure_cpu_percent", Unit::percent, 7},
         always<C>,
         pressure<PRESSURE_CPU>,
         "Share of the time in which at least one task of the process's cgroup waited for a CPU (PSICPU%), I/O "
         "(PSIIO%) or memory (PSIMEM%); PSI calls this `some`. pressure_of_machine is 1 if the values are for the "
         "whole machine, because the kernel has none for the cgroup: on cgroup v1, for the root cgroup, or if pressure "
         "accounting by cgroup is off.",
         extra},
        {{"PSIIO%", "pressure_io_percent", Unit::percent, 6}, always<C>, pressure<PRESSURE_IO>, "", extra},
        {{"PSIMEM%", "pressure_memory_percent", Unit::percent, 7}, always<C>, pressure<PRESSURE_MEMORY>, "", extra},
        {{"", "pressure_of_machine", Unit::count}, json_only<C>, around<&A::machine_wide>},
        {{"CPUS", "allowed_cpus", Unit::count, 4},
         always<C>,
         around<&A::allowed_cpus>,
         "Number of CPUs that the process's main thread (or, if that has exited, another thread) may use, and number "
         "of threads of the process.",
         extra},
        {{"", "process_threads", Unit::count}, json_only<C>, around<&A::threads>},
        {{"", "process_major_faults", Unit::count},
         json_only<C>,
         around<&A::major_faults>,
         "Page faults that read from disk, in all threads of the process."},
        {{"READ", "read_bytes", Unit::bytes, 7},
         always<C>,
         around<&A::read_bytes>,
         "Bytes that the process read from disks (READ), and bytes that it dirtied in the page cache, to be written to "
         "disks (WRITTEN).",
         extra},
        {{"WRITTEN", "written_bytes", Unit::bytes, 7}, always<C>, around<&A::written_bytes>, "", extra},
        {{"SWAP", "swapped_bytes", Unit::bytes, 7},
         always<C>,
         around<&A::swapped_bytes>,
         "Memory of the process that is swapped out.",
         extra},
        {{"NODE", "numa_nodes", Unit::text, 4},
         always<C>,
         around<&A::nodes>,
         "NUMA nodes of the CPUs that the process's CUDA threads ran on last (NODE), and of all NVIDIA GPUs of the "
         "machine (GPUNODE), as far as sysfs has them.",
         extra},
        {{"GPUNODE", "gpu_numa_nodes", Unit::text, 7}, always<C>, around<&A::gpu_nodes>, "", extra},
    });

// Selects the parts that are 1% or more in at least one row, and those that the user selected.
std::bitset<TIME_PARTS> parts_to_show(const std::map<TimeKey, TimeGroup>& groups, const Context& context)
{
    constexpr uint64_t min_share = 100; // 1/100
    std::bitset<TIME_PARTS> parts;
    for (size_t part = 0; part < TIME_PARTS; part++)
        parts[part] =
            (!context.settings.cheap || is_call(part)) && std::ranges::any_of(groups, [part](const auto& group) {
                const TimeSums& sums = group.second.sums;
                return sums.ns[part] && sums.ns[part] * min_share >= sums.wall_ns;
            });
    const auto show = [&](std::string_view name) {
        const auto named = std::ranges::find(names, name, &TimePartName::header);
        const auto part = static_cast<size_t>(named - names.begin());
        if (named != names.end() && is_shown(part, context.settings) && (!context.settings.cheap || is_call(part)))
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
                                     {"stack", documented_columns(stack_fields())},
                                     {"file", documented_columns(file_fields())},
                                     {"connection", documented_columns(peer_fields())}});
}

void print_groups(Output& output, const std::map<TimeKey, TimeGroup>& groups, const Context& context, uint64_t wall_ns)
{
    Context shown = context;
    shown.parts = parts_to_show(groups, context);
    print_table<K, G, C>(output, fields, groups, shown, wall_ns, context.settings.sort,
                         [](const G& group) { return static_cast<double>(group.sums.wall_ns); });
}

} // namespace gpusnoop::cudagap
