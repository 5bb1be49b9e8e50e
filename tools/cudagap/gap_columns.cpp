// SPDX-License-Identifier: Apache-2.0
// Lines and histograms about gaps between launches.
#include "rows/label.hpp"
#include "tools/cudagap/columns.hpp"
#include "tools/cudagap/gap_causes.hpp"
#include "tools/cudagap/parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

namespace gpusnoop::cudagap {
namespace {

using C = Context;
using L = GapLine;

// "PIPE 143.2 ms"; "DISK 20.1 ms on train/part-7.tar"
std::string longest_block(const waker& waker, const std::string& file)
{
    const std::string_view header = time_part_names[std::min<size_t>(waker.part, TIME_OTHER)].header;
    return fmt::format("{} {:.1f} ms{}{}", header.substr(0, header.size() - 1),
                       static_cast<double>(waker.blocked_ns) / 1e6, file.empty() ? "" : " on ", file);
}

// Phrase for the event that ended a blocked period. Empty if a thread ended the period, and also if an interrupt ended
// a wait for a device, because such waits normally end with an interrupt.
std::string_view until_words(const waker& waker)
{
    if (waker.by == WOKEN_BY_INTERRUPT && !is_wait_for_thread(waker.part) && waker.part != TIME_OTHER)
        return {};
    return block_end_words(waker.by);
}

std::string reason_key(const waker& waker)
{
    const std::string_view key = time_part_names[std::min<size_t>(waker.part, TIME_OTHER)].key;
    return std::string(key.substr(0, key.rfind('_')));
}

// Cell about the gap's longest blocked period; empty if there was none.
template<auto get>
constexpr auto of_block =
    [](const L& l, const C&) { return l.call.gap.waker.blocked_ns ? Cell(get(l.call.gap.waker)) : Cell(); };

// Cell about the waker; empty if the waker is not known.
template<auto get>
constexpr auto of_waker = [](const L& l, const C&) { return l.call.gap.waker.tid ? Cell(get(l.call)) : Cell(); };

// Cell about the waker's activity before the wakeup; empty if that is not known.
template<auto get>
constexpr auto of_known = [](const L& l, const C&) { return l.call.known ? Cell(get(l.call.wakers[0])) : Cell(); };

// Cell about the launch before or after the gap.
template<auto which, auto get>
constexpr auto of_launch = [](const L& l, const C&) { return get(l.launches.*which); };

Cell type(const GapLaunch& launch)
{
    return std::string(launch.type());
}

Cell handle(const GapLaunch& launch)
{
    return launch.call.kind == KIND_LAUNCH_LIST ? Cell() : Cell(uint64_t{launch.call.handle});
}

Cell kernel(const GapLaunch& launch)
{
    return launch.kernel.text.empty() ? Cell() : Cell(launch.kernel.text);
}

Cell source(const GapLaunch& launch)
{
    return launch.kernel.text.empty() ? Cell() : Cell(std::string(source_name(launch.kernel.source)));
}

constexpr auto before = &GapLaunches::before;
constexpr auto after = &GapLaunches::after;

uint64_t took(const period& period)
{
    return std::accumulate(std::begin(period.ns), std::end(period.ns), uint64_t{0});
}

template<size_t part>
constexpr Field<C, L> part_field = {{"", time_part_names[part].key, Unit::count},
                                    [](const C& c) { return is_shown(part, c.settings) ? Shown::json : Shown::no; },
                                    [](const L& l, const C&) { return Cell(uint64_t{l.call.gap.ns[part]}); },
                                    part ? "" : "The parts of the gap, explained under `DESCRIPTION`."};

template<class Parts>
struct PartFields;
template<size_t... part>
struct PartFields<std::index_sequence<part...>> {
    static constexpr Field<C, L> all[] = {part_field<part>...};
};

constexpr auto fields_of_lines = fields_of<Field<C, L>>(
    {{{"GAP(us)", "gap_ns", Unit::ns_as_us, 9},
      always<C>,
      [](const L& l, const C&) { return Cell(uint64_t{l.call.gap_ns}); },
      "Duration of the gap; in JSON, the parts add up to it."}},
    PartFields<std::make_index_sequence<TIME_PARTS>>::all,
    {
        {{"", "before", Unit::text},
         json_only<C>,
         of_launch<before, type>,
         "The launches before and after the gap: their type (`kernel`, `graph`, `host function` or `kernels of several "
         "devices`), their handle, their name, if known, and the source of the name (see `cudalaunch`(8))."},
        {{"", "before_handle", Unit::hex}, json_only<C>, of_launch<before, handle>},
        {{"", "before_kernel", Unit::text}, json_only<C>, of_launch<before, kernel>},
        {{"", "before_name_source", Unit::text}, json_only<C>, of_launch<before, source>},
        {{"", "after", Unit::text}, json_only<C>, of_launch<after, type>},
        {{"", "after_handle", Unit::hex}, json_only<C>, of_launch<after, handle>},
        {{"", "after_kernel", Unit::text}, json_only<C>, of_launch<after, kernel>},
        {{"", "after_name_source", Unit::text}, json_only<C>, of_launch<after, source>},
        {{"", "block_reason", Unit::text},
         json_only<C>,
         of_block<reason_key>,
         "The longest blocked period of the gap: its reason, its duration, and the file that was waited for."},
        {{"", "block_ns", Unit::count},
         json_only<C>,
         of_block<[](const waker& waker) { return uint64_t{waker.blocked_ns}; }>},
        {{"", "block_file", Unit::text},
         json_only<C>,
         [](const L& l, const C&) { return l.files[0].empty() ? Cell() : Cell(l.files[0]); }},
        {{"", "block_ended_by", Unit::text},
         json_only<C>,
         [](const L& l, const C&) {
             const std::string_view name = block_end_name(l.call.gap.waker.by);
             return name.empty() ? Cell() : Cell(std::string(name));
         },
         "The event that ended the longest blocked period: a wakeup by another `thread` (see waker_pid); the `timeout` "
         "of the system call in which the thread blocked; a `signal` that a timer or I/O sent (one sent by a thread "
         "counts as `thread`); or an `interrupt` of the network, another device, or a timer other than that timeout."},
        {{"", "waker_pid", Unit::count},
         json_only<C>,
         of_waker<[](const gap_record& gap) { return uint64_t{gap.gap.waker.pid}; }>,
         "The thread that ended the longest blocked period (the waker). It is known only if the blocked thread waited "
         "in poll, for a lock, pipe, socket or child process, or for an unknown reason. Periods that a device or timer "
         "ended have no waker."},
        {{"", "waker_tid", Unit::count},
         json_only<C>,
         of_waker<[](const gap_record& gap) { return uint64_t{gap.gap.waker.tid}; }>},
        {{"", "waker_comm", Unit::text},
         json_only<C>,
         of_waker<[](const gap_record& gap) { return comm_of(gap.gap.waker); }>},
        {{"", "waker_ended_ns", Unit::count},
         json_only<C>,
         of_waker<[](const gap_record& gap) { return uint64_t{gap.gap.waker.blocked_ns}; }>,
         "Duration of the blocked period that the waker ended: the value of `block_ns`, if the waker is known."},
        {{"", "waker_wall_ns", Unit::count},
         json_only<C>,
         of_known<took>,
         "Time between the last two recorded wakeups by the waker (waker_wall_ns). The next two keys are the parts of "
         "it in which the waker was on a CPU, or waited for one."},
        {{"", "waker_cpu_ns", Unit::count},
         json_only<C>,
         of_known<[](const period& period) { return uint64_t{period.ns[TIME_CPU]}; }>},
        {{"", "waker_runq_ns", Unit::count},
         json_only<C>,
         of_known<[](const period& period) { return uint64_t{period.ns[TIME_RUNQ]}; }>},
        {{"", "running", Unit::count},
         json_only<C>,
         [](const L& l, const C&) { return l.call.cpus ? Cell(uint64_t{l.call.running}) : Cell(); },
         "Number of runnable threads when the gap ended, and number of CPUs that they share. Only CPUs that the thread "
         "may use count, and only the machine's first 512."},
        {{"", "cpus", Unit::count},
         json_only<C>,
         [](const L& l, const C&) { return l.call.cpus ? Cell(uint64_t{l.call.cpus}) : Cell(); }},
        {{"REASONS", "", Unit::text, 8},
         always<C>,
         [](const L& l, const C&) { return Cell(largest_parts(parts_of(l.call.gap))); },
         "Up to four parts that are at least 1% of the gap, largest first. Calls that do not launch are parts, too: "
         "WAIT means that the gap is long because the GPU is busy."},
    });

// For one row of the histogram: sums the parts of time (TimeParts) of its gaps, and lists the largest. octave: log2 of
// the gaps' length, rounded down.
std::string note(const GapGroup& group, unsigned octave)
{
    TimeParts parts{};
    for (const auto& [bucket, more] : group.parts)
        if (log2_floor(std::max<uint64_t>(Histogram::bucket_low(bucket), 1)) == octave)
            std::ranges::transform(parts, more, parts.begin(), std::plus<>());
    return largest_parts(parts);
}

std::vector<std::pair<std::string_view, uint64_t>> fields_of_bucket(const GapGroup& group, unsigned bucket,
                                                                    const Settings& settings)
{
    std::vector<std::pair<std::string_view, uint64_t>> fields;
    const TimeParts& parts = group.parts.at(bucket);
    for (size_t part = 0; part < TIME_PARTS; part++)
        if (is_shown(part, settings))
            fields.emplace_back(time_part_names[part].key, parts[part]);
    return fields;
}

} // namespace

std::string largest_parts(const TimeParts& parts)
{
    constexpr size_t max_parts = 4;
    constexpr double min_percent = 1;
    const auto all = static_cast<double>(std::accumulate(parts.begin(), parts.end(), uint64_t{0}));
    std::array<size_t, TIME_PARTS> order{};
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t part) { return parts[part]; });
    std::string text;
    for (size_t part : std::span(order).first(max_parts))
        if (const double percent = 100 * static_cast<double>(parts[part]) / all; percent >= min_percent) {
            const std::string_view header = time_part_names[part].header;
            text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", header.substr(0, header.size() - 1), percent);
        }
    return text;
}

std::string launches_line(const GapLaunches& launches, const NameOptions& names)
{
    const std::string before = launches.before.text(names.form), after = launches.after.text(names.form);
    return before == after ? fmt::format("between two launches of {}", before)
                           : fmt::format("between {} and {}", before, after);
}

std::vector<std::string> waker_lines(const gap_record& gap, const GapFiles& files)
{
    std::vector<std::string> lines;
    const period* held_up = &gap.gap;
    for (uint32_t step = 0;; step++) {
        const waker& waker = held_up->waker;
        const std::string& file = files.at(step);
        const std::string_view until = until_words(waker);
        if (!waker.tid && file.empty() && until.empty())
            break;
        lines.push_back(fmt::format("{:{}}{}", "", 2 * step, longest_block(waker, file)));
        if (!until.empty())
            lines.back() += fmt::format(", {}", until);
        if (!waker.tid)
            break;
        lines.back() += fmt::format(", woken by {} {}", waker.pid, comm_of(waker));
        if (step >= std::min<uint32_t>(gap.known, WAKERS))
            break;
        held_up = &gap.wakers[step];
        lines.back() += fmt::format(" (its time since its previous wakeup: {})", largest_parts(parts_of(*held_up)));
    }
    if (!lines.empty() && gap.cpus)
        lines.push_back(fmt::format("{} runnable threads on {} CPUs", gap.running, gap.cpus));
    return lines;
}

std::span<const Field<Context, GapLine>> line_fields()
{
    return fields_of_lines;
}

void print_histograms(Output& output, const std::map<GapKey, GapGroup>& groups, const Context& context,
                      uint64_t wall_ns)
{
    for (const auto& [key, group] : groups) {
        Label label;
        label.fields.emplace_back("measure", context.settings.measure);
        label.add_who(context.who(), key.who, group.who, context.processes);
        label.add_stream(context.settings.view, key.stream);
        output.histogram(
            label.title, context.options.unit_name(), group.gaps, label.fields, wall_ns,
            {.text = [&group](unsigned octave) { return note(group, octave); },
             .fields = [&](unsigned bucket) { return fields_of_bucket(group, bucket, context.settings); }});
    }
}

} // namespace gpusnoop::cudagap
