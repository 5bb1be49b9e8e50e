// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"

#include <algorithm>

namespace gpusnoop::cudasync {
namespace {

using K = WaitKey;
using G = WaitGroup;
using C = Context;

// Waiting time as a share of the time of the row's threads.
Cell share_of_time(const G& group, const C& context)
{
    const double had = context.seconds * 1e9 * static_cast<double>(group.threads.size());
    return had > 0 ? Cell(100 * static_cast<double>(group.total_ns) / had) : Cell();
}

// How the row's waits were found. "calls": by probes. "stacks": on the stacks of threads, because they began before
// tracing.
std::string_view source_of(const G& group)
{
    const bool calls = group.calls || group.ended || group.waiting > group.earlier;
    return !group.earlier ? "calls" : calls ? "calls,stacks" : "stacks";
}

constexpr Field<C, K, G> fields[] = {
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    vendor_field<K, G, C>,
    function_field<K, G, C>,
    {{"WAIT", "wait", Unit::text, 7},
     where_set<C, &Settings::wait>,
     [](const K& k, const G&, const C&) { return Cell(std::string(wait_name(k.wait))); },
     "Kind of wait, see `DESCRIPTION`; shown if rows are grouped by it."},
    {{"CALLS", "calls", Unit::count, 8},
     always<C>,
     count_of<&G::calls>,
     "Calls that returned in the interval; JSON also has their number per second."},
    {{"", "calls_per_second", Unit::rate}, json_only<C>, rate_of<&G::calls>},
    {{"SPINS", "not_ready", Unit::count, 8},
     always<C>,
     count_of<&G::not_ready>,
     "Polls that returned `not ready` because the work was unfinished. CALLS includes them."},
    {level({"WAITING", "waiting", Unit::count, 7}), unless_failed<C>, count_of<&G::waiting>,
     "Calls that had not returned at the end of the interval. They never include polls. Not shown with `-x`."},
    {{"EARLIER", "waiting_earlier", Unit::count, 7},
     unless_failed_if<C, &C::earlier>,
     count_of<&G::earlier>,
     "How many of the calls in WAITING began before tracing. In text, the column appears only if there are such calls. "
     "Not shown with `-x`."},
    {{"", "source", Unit::text},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C&) { return Cell(std::string(source_of(g))); },
     "How the waits were found: `calls` (by probes), `stacks` (on the stacks of threads, for waits that began before "
     "tracing), or `calls,stacks` (both). Not shown with `-x`."},
    {{"ENDED", "ended", Unit::count, 5},
     unless_failed_if<C, &C::ended>,
     count_of<&G::ended>,
     "Calls that never returned because their thread ended. JSON also has their total duration. In text, the column "
     "appears only if there are such calls. Not shown with `-x`."},
    {{"", "ended_ns", Unit::count}, unless_failed<C, Shown::json>, count_of<&G::ended_ns>},
    errors_field<K, G, C>,
    {{"TOTAL(s)", "total_ns", Unit::seconds, 9},
     always<C>,
     count_of<&G::total_ns>,
     "Time that threads spent in the row's calls in the interval; in JSON, in nanoseconds. It includes calls that have "
     "not returned, except with `-x`."},
    {{"THREADS", "threads", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); },
     "Number of threads that were in one of the row's calls in the interval. Other threads of the process are not "
     "counted.",
     extra},
    {{"WALL%", "wall_percent", Unit::percent, 6},
     always<C>,
     [](const K&, const G& g, const C& c) { return share_of_time(g, c); },
     "Percentage of their time that the threads in THREADS spent in the row's calls: TOTAL(s) / (interval x THREADS). "
     "At 100, they do nothing else."},
    {{"p50(us)", "duration_p50_ns", Unit::ns_as_us, 9},
     always<C>,
     duration_percentile<50>,
     "Median, 95th and 99th percentile of the durations of calls that returned in the interval, to within about 6%. If "
     "a call began before the interval, its duration includes the time before.",
     extra},
    {{"p95(us)", "duration_p95_ns", Unit::ns_as_us, 9}, always<C>, duration_percentile<95>, "", extra},
    {{"p99(us)", "duration_p99_ns", Unit::ns_as_us, 8}, always<C>, duration_percentile<99>},
    {{"MAX(us)", "duration_max_ns", Unit::ns_as_us, 8},
     always<C>,
     count_of<&G::max_ns>,
     "Duration of the longest call. A call in WAITING counts with its time so far, a call in ENDED with its time until "
     "the thread ended."},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

constexpr LineField fields_of_lines[] = {
    line_layer,
    line_vendor,
    line_stream,
    {{"WAIT", "wait", Unit::text, 7},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(std::string(wait_name(l.call.key.wait.wait))); },
     "The kind of wait."},
    {{"", "handle", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return if_any(l.call.key.subject); },
     "The event or context that was waited for, if the call names one."},
    {{"", "not_ready", Unit::count},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.key.flags & CALL_NOT_READY ? 1U : 0U}); },
     "1 for polls that returned not ready, else 0."},
    line_latency,
    line_result,
    line_result_code,
    line_captured,
    line_function,
};

void print_histograms(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns)
{
    print_call_histograms(output, groups.groups(), &G::duration, context.options.unit_name(), context, wall_ns,
                          [&](Label& label, const K& key, const G&) {
                              if (context.settings.wait)
                                  label.add("wait", std::string(wait_name(key.wait)));
                          });
}

} // namespace

std::span<const LineField> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort, {{"line", columns_of_lines(line_fields())}});
}

void print_groups(Output& output, const WaitGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    context.earlier = std::ranges::any_of(groups.groups(), [](const auto& group) { return group.second.earlier > 0; });
    context.ended = std::ranges::any_of(groups.groups(), [](const auto& group) { return group.second.ended > 0; });
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, context.settings.sort,
                         [](const G& group) { return static_cast<double>(group.total_ns); });
}

} // namespace gpusnoop::cudasync
