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

// Of the time that the threads of the row had.
Cell share_of_time(const G& group, const C& context)
{
    const double had = context.seconds * 1e9 * static_cast<double>(group.threads.size());
    return had > 0 ? Cell(100 * static_cast<double>(group.total_ns) / had) : Cell();
}

// Where it is known from: calls that were seen to begin, or what stacks show of those that began before.
std::string_view source_of(const G& group)
{
    const bool calls = group.calls || group.ended || group.waiting > group.earlier;
    return !group.earlier ? "calls" : calls ? "calls,stacks" : "stacks";
}

const Field<C, K, G> fields[] = {
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    vendor_field<K, G, C>,
    function_field<K, G, C>,
    {{"WAIT", "wait", Unit::text, 7},
     [](const C& c) { return c.settings.wait ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(wait_name(k.wait))); }},
    {{"CALLS", "calls", Unit::count, 8}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.calls); }},
    {{"", "calls_per_second", Unit::rate},
     json_only<C>,
     [](const K&, const G& g, const C& c) { return Cell(static_cast<double>(g.calls) / c.seconds); }},
    {{"SPINS", "not_ready", Unit::count, 8},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.not_ready); }},
    {level({"WAITING", "waiting", Unit::count, 7}),
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.waiting); }},
    {{"EARLIER", "waiting_earlier", Unit::count, 7},
     [](const C& c) { return c.options.failed_only ? Shown::no
                             : c.earlier           ? Shown::both
                                                   : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.earlier); }},
    {{"", "source", Unit::text},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(std::string(source_of(g))); }},
    {{"ENDED", "ended", Unit::count, 5},
     [](const C& c) { return c.options.failed_only ? Shown::no
                             : c.ended             ? Shown::both
                                                   : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.ended); }},
    {{"", "ended_ns", Unit::count},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.ended_ns); }},
    errors_field<K, G, C>,
    {{"TOTAL(s)", "total_ns", Unit::seconds, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.total_ns); }},
    {{"THREADS", "threads", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); },
     extra},
    {{"WALL%", "wall_percent", Unit::percent, 6},
     always<C>,
     [](const K&, const G& g, const C& c) { return share_of_time(g, c); }},
    {{"p50(us)", "duration_p50_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); },
     extra},
    {{"p95(us)", "duration_p95_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.95); },
     extra},
    {{"p99(us)", "duration_p99_ns", Unit::ns_as_us, 8},
     always<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); }},
    {{"MAX(us)", "duration_max_ns", Unit::ns_as_us, 8},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.max_ns); }},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

using L = CallLine;

const Field<C, L> fields_of_lines[] = {
    line_layer<C, L>,
    line_vendor<C, L>,
    line_stream<C, L>,
    {{"WAIT", "wait", Unit::text, 7},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(wait_name(l.call.key.wait.wait))); }},
    {{"", "handle", Unit::hex}, json_only<C>, [](const L& l, const C&) { return if_any(l.call.key.subject); }},
    {{"", "not_ready", Unit::count},
     json_only<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.key.flags & CALL_NOT_READY ? 1U : 0U}); }},
    line_latency<C, L>,
    line_result<C, L>,
    line_result_code<C, L>,
    line_captured<C, L>,
    line_function<C, L>,
};

} // namespace

std::span<const Field<Context, CallLine>> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort, {{"line", columns_of_lines(line_fields())}});
}

void print_groups(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns,
                  const FramesOf<WaitKey, WaitGroup>& frames)
{
    Context shown = context;
    shown.earlier = std::ranges::any_of(groups.groups(), [](const auto& group) { return group.second.earlier > 0; });
    shown.ended = std::ranges::any_of(groups.groups(), [](const auto& group) { return group.second.ended > 0; });
    print_table<K, G, C>(
        output, fields, groups.groups(), shown, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.total_ns); }, frames);
}

void print_histograms(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns)
{
    for (const auto& [key, group] : groups.groups()) {
        if (!group.duration.total())
            continue;
        Label label;
        label.fields.emplace_back("measure", context.settings.measure);
        label.add_call(context.settings.view, key, group.who, context.processes, context.probes);
        if (context.settings.wait)
            label.add("wait", std::string(wait_name(key.wait)));
        output.histogram(label.title, context.options.unit_name(), group.duration, label.fields, wall_ns);
    }
}

} // namespace gpusnoop::cudasync
