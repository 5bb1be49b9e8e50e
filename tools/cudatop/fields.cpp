// SPDX-License-Identifier: Apache-2.0
#include "fields.hpp"

#include "calls/call_fields.hpp"
#include "calls/call_results.hpp"
#include "row_gpus.hpp"
#include "verdicts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace gpusnoop::cudatop {
namespace {

using K = Key;
using G = Group;
using C = Context;

Shown always(const C&)
{
    return Shown::both;
}

template<class Group, class Member>
uint64_t sum(std::span<const Group* const> groups, Member Group::*member)
{
    uint64_t all = 0;
    for (const Group* group : groups)
        all += group ? group->*member : 0;
    return all;
}

uint64_t bytes(const G& g, std::initializer_list<direction> directions)
{
    uint64_t all = 0;
    for (const direction d : directions)
        all += g.copies[d] ? g.copies[d]->bytes : 0;
    return all;
}

template<class Part, class Member>
uint64_t of(const Part* part, Member Part::*member)
{
    return part ? part->*member : 0;
}

// What no program counts is not known.
Cell count_if(bool known, uint64_t n)
{
    return known ? Cell(n) : Cell();
}

Cell rate_if(bool known, uint64_t n, const C& c)
{
    return known ? per_second(n, c) : Cell();
}

Cell bytes_per_second(uint64_t n, const C& c)
{
    if (!c.known.copies)
        return {};
    return static_cast<uint64_t>(static_cast<double>(n) / c.seconds);
}

// Of the time that the threads had which waited, as cudasync has it.
Cell share_of_time(const WaitGroup* group, const C& c)
{
    if (!c.known.waits)
        return {};
    if (!group || group->threads.empty())
        return 0.0;
    return share(group->total_ns, static_cast<uint64_t>(c.seconds * 1e9) * group->threads.size());
}

// Threads wait, whatever kernels and devices they wait for.
Shown whole_threads(const C& c)
{
    return c.settings.rows.kernel || c.settings.rows.device ? Shown::no : Shown::both;
}

std::optional<uint64_t> spinning_ns(const G& g, const C& c)
{
    return g.waits ? c.diagnosis.spinning_ns(g.waits->threads) : std::optional<uint64_t>(0);
}

// Of the same time as WAIT%.
Cell share_of_waits(const G& g, const C& c, std::optional<uint64_t> ns)
{
    if (!c.known.waits || !ns)
        return {};
    if (!g.waits || g.waits->threads.empty())
        return 0.0;
    return share(*ns, static_cast<uint64_t>(c.seconds * 1e9) * g.waits->threads.size());
}

// Names of columns say already whose these rows are.
bool by_owner_alone(const C& c)
{
    const WhoView& who = c.settings.rows.who;
    return !who.pid && (who.container || who.pod || who.pod_namespace);
}

// Says more than where in the machine's tree of cgroups somebody has logged in.
bool is_telling(const Owner& owner)
{
    const std::string& unit = owner.where.unit;
    return owner.container() || !owner.pod_name().empty() || !owner.where.slurm_job.empty() ||
           (unit.ends_with(".service") && !unit.starts_with("user@"));
}

// "python3 train.py" of /usr/bin/python3.
std::string_view without_folder(std::string_view command_line)
{
    const size_t slash = command_line.substr(0, command_line.find(' ')).rfind('/');
    return slash == std::string_view::npos ? command_line : command_line.substr(slash + 1);
}

Cell pod_or_command(const G& g, const C& c)
{
    if (!g.who.owners.empty() && std::ranges::all_of(g.who.owners, [](const Owner* of) { return is_telling(*of); }))
        if (Cell owner = owner_cell(g.who, OwnerPart::text); !std::holds_alternative<std::monostate>(owner))
            return owner;
    const Cell command = command_line_cell(g.who, c.processes);
    const auto* text = std::get_if<std::string>(&command);
    return text ? Cell(std::string(without_folder(*text))) : Cell();
}

uint64_t errors(const G& g)
{
    return of(g.launches, &LaunchGroup::errors) + sum<CopyGroup>(g.copies, &CopyGroup::errors) +
           of(g.waits, &WaitGroup::errors) - g.double_counted + of(g.polls, &WaitGroup::errors) +
           of(g.memory, &AllocationGroup::failures) + of(g.driver, &DriverGroup::errors);
}

// Kernels behind graphs; not known where none of the graphs is.
std::optional<uint64_t> graph_kernels(const G& g, const C& c)
{
    const uint64_t kernels = of(g.launches, &LaunchGroup::graph_kernels);
    if (!c.known.graphs || (!kernels && of(g.launches, &LaunchGroup::graphs_unknown)))
        return std::nullopt;
    return kernels;
}

uint64_t held(const G& g)
{
    return g.memory ? g.memory->device().bytes_held() : 0;
}

// The part that was seen to be allocated.
Cell traced_memory(const G& g, const C& c)
{
    if (!c.known.memory)
        return {};
    return c.processes.any_from_before(g.who.images) ? Cell(AtLeast{held(g)}) : Cell(held(g));
}

// Of which alone some figures are known.
bool whole_processes(const C& c)
{
    return c.settings.rows.of_processes() && !c.settings.rows.device;
}

// With contexts and earlier allocations.
Cell memory(const K& k, const G& g, const C& c)
{
    const auto by_driver = memory_by_driver(k, g, c);
    return by_driver ? Cell(*by_driver) : traced_memory(g, c);
}

// Above a byte per second, which is none, and for less than a year.
std::optional<double> full_in_seconds(const G& g, const C& c)
{
    constexpr double year = 365 * 24 * 3600;
    const auto seconds = c.diagnosis.full_in_seconds(g.who.images);
    return seconds && *seconds < year ? seconds : std::nullopt;
}

const XidsOf* xids_of(const G& g, const C& c)
{
    for (const ImageId& image : g.who.images)
        if (const auto found = c.xids.find(image.pid); found != c.xids.end())
            return &found->second;
    return nullptr;
}

// "0:42", "12:05", "3:00:00"
std::string clock_text(uint64_t seconds)
{
    const uint64_t minutes = seconds / 60;
    return minutes < 60 ? fmt::format("{}:{:02}", minutes, seconds % 60)
                        : fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, seconds % 60);
}

Cell user(const G& g, const C& c)
{
    const Cell pid = pid_cell(g.who);
    const auto* number = std::get_if<uint64_t>(&pid);
    const auto name = number ? c.users.of(static_cast<pid_t>(*number)) : std::nullopt;
    return name ? Cell(*name) : Cell();
}

Cell text_if_any(std::string text)
{
    return text.empty() ? Cell() : Cell(std::move(text));
}

template<class T>
Cell optional(const std::optional<T>& value)
{
    return value ? Cell(*value) : Cell();
}

Shown in_json(const C&)
{
    return Shown::json;
}

// A count of the interval, for scripts; people read the rate.
#define COUNT(KEY, VALUE)                                                                                              \
    {                                                                                                                  \
        {{"", KEY, Unit::count},                                                                                       \
         in_json,                                                                                                      \
         [](const K& k, const G& g, const C& c) -> Cell {                                                              \
             (void)k, (void)c;                                                                                         \
             return VALUE;                                                                                             \
         }},                                                                                                           \
            "", Usual::no                                                                                              \
    }

#define COLUMN(HEADER, KEY, UNIT, WIDTH, VALUE)                                                                        \
    {                                                                                                                  \
        {HEADER, KEY, Unit::UNIT, WIDTH}, always, [](const K& k, const G& g, const C& c) -> Cell {                     \
            (void)k, (void)g, (void)c;                                                                                 \
            return VALUE;                                                                                              \
        }                                                                                                              \
    }

#define JSON_TEXT(KEY, VALUE)                                                                                          \
    {                                                                                                                  \
        {{"", KEY, Unit::text}, in_json, [](const K& k, const G& g, const C& c) { return text_if_any(VALUE); }}, "",   \
            Usual::no, false                                                                                           \
    }

const TopField fields[] = {
    {{{"KERNEL", "", Unit::text, 30},
      [](const C& c) { return c.settings.rows.kernel ? Shown::text : Shown::no; },
      [](const K&, const G& g, const C& c) {
          return g.kernel ? Cell(shown_name(*g.kernel, c.settings.names.form)) : Cell();
      }},
     "the kernel's name",
     Usual::batch,
     false},
    {{{"DEVICE", "", Unit::text, 7},
      [](const C& c) { return c.settings.rows.device ? Shown::text : Shown::no; },
      [](const K& k, const G& g, const C& c) { return text_if_any(gpu_text(gpus_of(k, g, c).gpus)); }},
     "the GPU: its index; nvidiaN: its device file; cuda:N: CUDA's number of it, in each process another",
     Usual::batch,
     false},
    {{{"", "device", Unit::count},
      [](const C& c) { return c.settings.rows.device ? Shown::json : Shown::no; },
      [](const K& k, const G&, const C&) {
          return k.gpu.by == Gpu::By::ordinal ? Cell(uint64_t{k.gpu.number}) : Cell();
      }},
     "",
     Usual::no,
     false},
    {{{"TROUBLE", "", Unit::text, 9},
      [](const C&) { return Shown::text; },
      [](const K& k, const G& g, const C& c) {
          const Verdict* verdict = worst(c.diagnosis, k, g);
          return verdict ? Cell(fmt::format("{}{}", severity_mark(verdict->severity), verdict->rule->name)) : Cell();
      }},
     "the worst of what is wrong with it: !! it does not work, ! it loses time or memory, . worth knowing",
     Usual::batch,
     false,
     "",
     false,
     true},
    {{{"", "trouble", Unit::text},
      in_json,
      [](const K& k, const G& g, const C& c) {
          const Verdict* verdict = worst(c.diagnosis, k, g);
          return verdict ? Cell(std::string(verdict->rule->name)) : Cell();
      }},
     "",
     Usual::no,
     false},
    {{{"", "severity", Unit::text},
      in_json,
      [](const K& k, const G& g, const C& c) {
          const Verdict* verdict = worst(c.diagnosis, k, g);
          return verdict ? Cell(std::string(severity_name(verdict->severity))) : Cell();
      }},
     "",
     Usual::no,
     false},
    {COLUMN("LAUNCH/s", "launches_per_second", rate, 8, rate_if(c.known.launches, of(g.launches, &LaunchGroup::kernels), c)),
     "kernels launched directly, not by a graph"},
    COUNT("launches", count_if(c.known.launches, of(g.launches, &LaunchGroup::kernels))),
    {COLUMN("MEM", "memory_bytes", bytes, 8, memory(k, g, c)),
     "device memory held: as the driver reports it, with NVML; else as far as it was seen to be allocated"},
    {{{"", "memory_source", Unit::text},
      in_json,
      [](const K& k, const G& g, const C& c) {
          if (memory_by_driver(k, g, c))
              return Cell(std::string("nvml"));
          return c.known.memory ? Cell(std::string("traced")) : Cell();
      }},
     "",
     Usual::no,
     false},
    {COLUMN("LIVE", "live_bytes", bytes, 7, traced_memory(g, c)),
     "device memory allocated since tracing began and not freed; >=: the process is older, and may hold more",
     Usual::no},
    COUNT("live_is_lower_bound", count_if(c.known.memory, uint64_t{c.processes.any_from_before(g.who.images)})),
    {COLUMN("WAIT%", "blocked_percent", percent, 6, share_of_time(g.waits, c)),
     "share of the waiting threads' time spent in calls that wait for the device, asleep or spinning", Usual::batch, false},
    COUNT("blocked_ns", count_if(c.known.waits, of(g.waits, &WaitGroup::total_ns))),
    COUNT("waits", count_if(c.known.waits, of(g.waits, &WaitGroup::calls))),
    {{{"SPIN%", "waits_spinning_percent", Unit::percent, 6},
      whole_threads,
      [](const K&, const G& g, const C& c) { return share_of_waits(g, c, spinning_ns(g, c)); }},
     "the part of WAIT% in which the thread used a CPU: it spins",
     Usual::screen,
     false},
    {{{"ASLEEP%", "waits_asleep_percent", Unit::percent, 7},
      whole_threads,
      [](const K&, const G& g, const C& c) {
          const auto spinning = spinning_ns(g, c);
          const uint64_t all = of(g.waits, &WaitGroup::total_ns);
          return share_of_waits(g, c, spinning ? std::optional(all - std::min(all, *spinning)) : std::nullopt);
      }},
     "the part of WAIT% in which the thread slept",
     Usual::no,
     false},
    {{{"CPU%", "cpu_percent", Unit::percent, 5},
      [](const C& c) { return whole_processes(c) ? Shown::both : Shown::no; },
      [](const K&, const G& g, const C& c) { return optional(c.diagnosis.cpu_percent(g.who.images)); }},
     "CPU time of the process, of all its threads, as a share of one CPU",
     Usual::screen},
    {{{"GPU", "", Unit::text, 7},
      [](const C&) { return Shown::text; },
      [](const K& k, const G& g, const C& c) { return text_if_any(shown_gpus(gpus_of(k, g, c))); }},
     "the GPUs of the process: index; nvidiaN: device file; cuda:N: the process's own number; ?: may be any of them",
     Usual::screen,
     false},
    JSON_TEXT("gpu", gpu_text(gpus_of(k, g, c).gpus)),
    JSON_TEXT("gpu_source", std::string(source_name(gpus_of(k, g, c).source))),
    JSON_TEXT("gpu_possible", gpu_text(gpus_of(k, g, c).possible)),
    {{{"ERROR", "", Unit::text, 15},
      [](const C&) { return Shown::text; },
      [](const K&, const G& g, const C&) {
          return g.error.empty() ? Cell() : Cell(std::string(short_error(g.error)));
      }},
     "the error that most calls failed with",
     Usual::screen,
     false,
     "",
     false,
     false,
     true},
    {{{"", "error", Unit::text},
      in_json,
      [](const K&, const G& g, const C&) { return g.error.empty() ? Cell() : Cell(g.error); }},
     "",
     Usual::no,
     false},
    {{{"POD/COMMAND", "", Unit::text, 16},
      [](const C& c) { return by_owner_alone(c) ? Shown::no : Shown::text; },
      [](const K&, const G& g, const C& c) { return pod_or_command(g, c); }},
     "the pod, container, job or service that it belongs to; without one, the command line",
     Usual::batch,
     false},
    {{{"", "command_line", Unit::text},
      in_json,
      [](const K&, const G& g, const C& c) { return command_line_cell(g.who, c.processes); }},
     "",
     Usual::no,
     false},
    {{{"TREND", "", Unit::text, 8},
      [](const C& c) { return c.settings.screen ? Shown::text : Shown::no; },
      [](const K&, const G&, const C&) { return Cell(); }},
     "the last intervals of the column that rows are sorted by; of LAUNCH/s where that has no figures",
     Usual::screen,
     false},
    {COLUMN("GRAPH/s", "graph_launches_per_second", rate, 7, rate_if(c.known.launches, of(g.launches, &LaunchGroup::graphs), c)),
     "graphs launched", Usual::screen},
    COUNT("graph_launches", count_if(c.known.launches, of(g.launches, &LaunchGroup::graphs))),
    {{{"GKERN/s", "graph_kernels_per_second", Unit::rate, 8},
      always,
      [](const K&, const G& g, const C& c) {
          const auto kernels = graph_kernels(g, c);
          return kernels ? per_second(*kernels, c) : Cell();
      }},
     "kernels started by graph launches, for graphs made since tracing began"},
    COUNT("graph_kernels", optional(graph_kernels(g, c))),
    COUNT("graphs_unknown", count_if(c.known.graphs, of(g.launches, &LaunchGroup::graphs_unknown))),
    COUNT("host_functions", count_if(c.known.launches, of(g.launches, &LaunchGroup::host_functions))),
    COUNT("captured", count_if(c.known.graphs, of(g.launches, &LaunchGroup::captured))),
    {{{"p99(us)", "launch_p99_ns", Unit::ns_as_us, 9},
      always,
      [](const K&, const G& g, const C&) { return g.launches ? duration_cell(*g.launches, 0.99) : Cell(); }},
     "time that a launch call takes on the host: 99 of 100 take less",
     Usual::no,
     false,
     "--latency"},
    {COLUMN("H2D/s", "h2d_bytes_per_second", bytes, 7, bytes_per_second(bytes(g, {DIRECTION_H2D}), c)), "bytes copied to the device"},
    {COLUMN("D2H/s", "d2h_bytes_per_second", bytes, 7, bytes_per_second(bytes(g, {DIRECTION_D2H}), c)), "bytes copied from the device", Usual::screen},
    {{{"D2D/s", "d2d_bytes_per_second", Unit::bytes, 7},
      always,
      [](const K&, const G& g, const C& c) {
          return bytes_per_second(bytes(g, {DIRECTION_D2D, DIRECTION_P2P}), c);
      }},
     "bytes copied within devices or between them",
     Usual::no},
    COUNT("h2d_bytes", count_if(c.known.copies, bytes(g, {DIRECTION_H2D}))),
    COUNT("d2h_bytes", count_if(c.known.copies, bytes(g, {DIRECTION_D2H}))),
    {{{"", "d2d_bytes", Unit::count},
      in_json,
      [](const K&, const G& g, const C& c) {
          return count_if(c.known.copies, bytes(g, {DIRECTION_D2D, DIRECTION_P2P}));
      }},
     "",
     Usual::no},
    {COLUMN("COPY/s", "copies_per_second", rate, 8, rate_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::copies), c)),
     "copies, sets and prefetches", Usual::no},
    COUNT("copies", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::copies))),
    COUNT("small_copies", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::small))),
    COUNT("copies_unsized", count_if(c.known.copies, sum<CopyGroup>(g.copies, &CopyGroup::unsized))),
    {{{"SMALL%", "small_percent", Unit::percent, 6},
      always,
      [](const K&, const G& g, const C& c) {
          if (!c.known.copies)
              return Cell();
          const uint64_t all = sum<CopyGroup>(g.copies, &CopyGroup::copies);
          return share(sum<CopyGroup>(g.copies, &CopyGroup::small),
                       all - sum<CopyGroup>(g.copies, &CopyGroup::unsized));
      }},
     "share of copies smaller than 64K, among those of known size",
     Usual::screen,
     false},
    {COLUMN("ALLOC/s", "allocs_and_frees_per_second", rate, 8,
            rate_if(c.known.memory, of(g.memory, &AllocationGroup::allocs) + of(g.memory, &AllocationGroup::frees), c)),
     "allocations and frees", Usual::screen},
    COUNT("allocs", count_if(c.known.memory, of(g.memory, &AllocationGroup::allocs))),
    COUNT("frees", count_if(c.known.memory, of(g.memory, &AllocationGroup::frees))),
    {{{"GROW/s", "growth_bytes_per_second", Unit::bytes, 7},
      [](const C& c) { return c.known.memory && whole_processes(c) ? Shown::both : Shown::no; },
      [](const K&, const G& g, const C& c) { return optional(c.diagnosis.growth(g.who.images)); }},
     "device memory allocated less what was freed, per second, over the last five",
     Usual::screen},
    {{{"FULL", "", Unit::text, 7},
      [](const C& c) { return c.known.memory && whole_processes(c) ? Shown::text : Shown::no; },
      [](const K&, const G& g, const C& c) {
          const auto seconds = full_in_seconds(g, c);
          return seconds ? Cell(clock_text(static_cast<uint64_t>(*seconds))) : Cell();
      }},
     "in what time its GPU is full at that rate, where NVML tells how much is free: minutes and seconds",
     Usual::no,
     false},
    {{{"", "full_in_seconds", Unit::rate},
      in_json,
      [](const K&, const G& g, const C& c) {
          return c.known.memory && whole_processes(c) ? optional(full_in_seconds(g, c)) : Cell();
      }},
     "",
     Usual::no,
     false},
    {COLUMN("FAILED", "allocation_failures", count, 6, count_if(c.known.memory, of(g.memory, &AllocationGroup::failures))),
     "allocations and frees that failed", Usual::screen, true, "", false, false, true},
    COUNT("out_of_memory", count_if(c.known.memory, of(g.memory, &AllocationGroup::out_of_memory))),
    {COLUMN("POLL%", "spinning_percent", percent, 6, share_of_time(g.polls, c)),
     "share of the polling threads' time spent in calls that poll for completion", Usual::screen, false},
    COUNT("polls", count_if(c.known.waits, of(g.polls, &WaitGroup::calls))),
    {{{"IOCTL/s", "ioctls_per_second", Unit::rate, 7},
      always,
      [](const K&, const G& g, const C& c) {
          return c.ioctls ? per_second(of(g.driver, &DriverGroup::calls), c) : Cell();
      }},
     "calls into the GPU driver",
     Usual::no},
    COUNT("ioctls", c.ioctls ? Cell(of(g.driver, &DriverGroup::calls)) : Cell()),
    {{{"IOCTL%", "ioctl_percent", Unit::percent, 6},
      always,
      [](const K&, const G& g, const C& c) {
          return c.ioctls ? share(of(g.driver, &DriverGroup::total_ns), static_cast<uint64_t>(c.seconds * 1e9))
                          : Cell();
      }},
     "time in these calls, as a share of one thread's time",
     Usual::no,
     false},
    COUNT("ioctl_ns", c.ioctls ? Cell(of(g.driver, &DriverGroup::total_ns)) : Cell()),
    {COLUMN("ERR/s", "errors_per_second", rate, 6, rate_if(c.known.results, errors(g), c)),
     "calls that returned an error: waits, allocations, driver calls; launches and copies with --latency", Usual::batch,
     true, "", false, false, true},
    COUNT("errors", count_if(c.known.results, errors(g))),
    {{{"XID", "xid", Unit::count, 4},
      always,
      [](const K&, const G& g, const C& c) {
          const XidsOf* xids = xids_of(g, c);
          return xids ? Cell(uint64_t{xids->last}) : Cell();
      }},
     "the last GPU error (Xid) that the driver reported for the process",
     Usual::screen,
     false,
     "",
     false,
     false,
     true},
    {{{"", "xids", Unit::count},
      in_json,
      [](const K&, const G& g, const C& c) {
          const XidsOf* xids = xids_of(g, c);
          return c.xid ? Cell(xids ? xids->count : 0) : Cell();
      }},
     "",
     Usual::no},
    {COLUMN("USER", "user", text, 8, user(g, c)), "whose process it is (effective user)", Usual::screen, false},
    {{{"QUIET", "", Unit::text, 7},
      [](const C&) { return Shown::text; },
      [](const K&, const G& g, const C& c) {
          const auto seconds = c.diagnosis.quiet_seconds(g.who.images);
          return seconds ? Cell(clock_text(static_cast<uint64_t>(*seconds))) : Cell();
      }},
     "how long it has made no CUDA call, nor been in one, as far as it has been traced: minutes and seconds",
     Usual::screen,
     false},
    {{{"", "quiet_seconds", Unit::rate},
      in_json,
      [](const K&, const G& g, const C& c) { return optional(c.diagnosis.quiet_seconds(g.who.images)); }},
     "",
     Usual::no,
     false},
    {COLUMN("SM%", "sm_percent", percent, 5, sm_percent(k, g, c)),
     "share of time in which kernels of the process ran, by the GPU's own counters", Usual::screen, true, "", true},
    COUNT("nvml_bytes", optional(memory_by_driver(k, g, c))),
    {COLUMN("GPU%", "gpu_percent", percent, 5, busiest(k, g, c)),
     "how busy the busiest GPU of the process is, with the work of all processes", Usual::no, false, "", true},
    {COLUMN("POWER", "gpu_watts", rate, 6, power(k, g, c)),
     "power that the GPUs of the process draw, for all processes, in watts", Usual::no, false, "", true},
    {COLUMN("MIG", "mig_instance", text, 10, optional(c.figures.instance_of(g.who.images))),
     "the MIG instance that the process runs on", Usual::no, false, "", true},
    {{{"", "kernel", Unit::text},
      [](const C& c) { return c.settings.rows.kernel ? Shown::json : Shown::no; },
      [](const K&, const G& g, const C&) {
          return g.kernel && !g.kernel->kernel.empty() ? Cell(g.kernel->kernel) : Cell();
      }},
     "",
     Usual::no,
     false},
    {{{"", "name_source", Unit::text},
      [](const C& c) { return c.settings.rows.kernel ? Shown::json : Shown::no; },
      [](const K&, const G& g, const C&) {
          return g.kernel && !g.kernel->kernel.empty() ? Cell(std::string(source_name(g.launches->name_source)))
                                                       : Cell();
      }},
     "",
     Usual::no,
     false},
    {{{"", "handle", Unit::hex},
      [](const C& c) { return c.settings.rows.kernel ? Shown::json : Shown::no; },
      [](const K&, const G& g, const C&) { return g.kernel && g.kernel->handle ? Cell(g.kernel->handle) : Cell(); }},
     "",
     Usual::no,
     false},
};

#undef JSON_TEXT
#undef COUNT
#undef COLUMN

} // namespace

std::span<const TopField> own_fields()
{
    return fields;
}

} // namespace gpusnoop::cudatop
