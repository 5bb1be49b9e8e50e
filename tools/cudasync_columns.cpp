// SPDX-License-Identifier: Apache-2.0
#include "cudasync_columns.hpp"

#include "call_fields.hpp"
#include "label.hpp"

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

const Field<K, G, C> fields[] = {
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    function_field<K, G, C>,
    {{"WAIT", "wait", Unit::text, 7},
     [](const C& c) { return c.settings.wait ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(wait_name(k.wait))); }},
    {{"CALLS", "calls", Unit::count, 8},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.calls); }},
    {{"", "calls_per_second", Unit::rate},
     json_only<C>,
     [](const K&, const G& g, const C& c) { return Cell(static_cast<double>(g.calls) / c.seconds); }},
    {{"SPINS", "not_ready", Unit::count, 8},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.not_ready); }},
    {{"WAITING", "waiting", Unit::count, 7},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.waiting); }},
    errors_field<K, G, C>,
    {{"TOTAL(s)", "total_ns", Unit::seconds, 10},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.total_ns); }},
    {{"THREADS", "threads", Unit::count, 7},
     [](const C& c) { return c.who().thread ? Shown::json : Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.threads.size()}); }},
    {{"WALL%", "wall_percent", Unit::percent, 6},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C& c) { return share_of_time(g, c); }},
    {{"p50(us)", "duration_p50_ns", Unit::ns_as_us, 9},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); }},
    {{"p95(us)", "duration_p95_ns", Unit::ns_as_us, 9},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.95); }},
    {{"p99(us)", "duration_p99_ns", Unit::ns_as_us, 9},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); }},
    {{"MAX(us)", "duration_max_ns", Unit::ns_as_us, 9},
     [](const C&) { return Shown::both; },
     [](const K&, const G& g, const C&) { return Cell(g.max_ns); }},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

} // namespace

void check_sort(const std::string& name)
{
    check_sort_column<K, G, C>(fields, name);
}

void print_groups(Output& output, const WaitGroups& groups, const Context& context, uint64_t wall_ns,
                  const FramesOf<WaitKey, WaitGroup>& frames)
{
    print_table<K, G, C>(
        output, fields, groups.groups(), context, wall_ns, context.settings.sort,
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
