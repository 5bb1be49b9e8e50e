// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"
#include "rows/process_line.hpp"

namespace gpusnoop::cudagraph {
namespace {

using K = GraphKey;
using G = GraphGroup;
using C = Context;

Shown of_execs(const C& c)
{
    return c.settings.exec ? Shown::both : Shown::no;
}

Shown of_execs_in_json(const C& c)
{
    return c.settings.exec ? Shown::json : Shown::no;
}

Shown in_summary(const C& c)
{
    return c.settings.summary ? Shown::both : Shown::no;
}

// Where rows are of one graph each, how it was made is a part of its life; elsewhere there are many. A summary has
// rates.
Shown where_many(const C& c)
{
    return c.settings.exec || c.settings.summary ? Shown::json : Shown::both;
}

Shown unless_summary(const C& c)
{
    return c.settings.summary ? Shown::json : Shown::both;
}

Shown where_updated(const C& c)
{
    return c.updates ? Shown::both : Shown::json;
}

Cell node_cell(const G& group, graph_node node)
{
    return group.exec && !group.exec->exec.nodes.unknown ? Cell(uint64_t{group.exec->exec.nodes.of[node]}) : Cell();
}

// Nodes of a graph from before tracing began are not known.
Cell nodes_text(const G& group)
{
    if (!group.exec || group.exec->exec.nodes.unknown)
        return std::string("?");
    return std::to_string(node_count(group.exec->exec.nodes));
}

// What leaves its room to the columns of updates, unless it is asked for.
Shown unless_updated(const C& c, Shown where)
{
    return c.updates && where == Shown::both ? Shown::json : where;
}

template<graph_node node>
constexpr Field<C, K, G> node_field(const Column& column)
{
    return {column, of_execs, [](const K&, const G& g, const C&) { return node_cell(g, node); }, extra};
}

const Field<C, K, G> fields[] = {
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    vendor_field<K, G, C>,
    function_field<K, G, C>,
    {{"EXEC", "exec", Unit::hex, 14},
     of_execs,
     [](const K&, const G& g, const C&) { return g.exec ? Cell(uint64_t{g.exec->exec.handle}) : Cell(); }},
    {{"", "exec_number", Unit::count}, of_execs_in_json, [](const K& k, const G&, const C&) { return Cell(k.exec); }},
    {{"", "graph", Unit::hex},
     of_execs_in_json,
     [](const K&, const G& g, const C&) {
         return g.exec && g.exec->exec.graph ? Cell(uint64_t{g.exec->exec.graph}) : Cell();
     }},
    {{"NODES", "", Unit::text, 6},
     [](const C& c) { return c.settings.exec ? Shown::text : Shown::no; },
     [](const K&, const G& g, const C&) { return nodes_text(g); }},
    {{"", "nodes", Unit::count},
     of_execs_in_json,
     [](const K&, const G& g, const C&) {
         return g.exec && !g.exec->exec.nodes.unknown ? Cell(node_count(g.exec->exec.nodes)) : Cell();
     }},
    node_field<NODE_KERNEL>({"KERNELS", "kernels", Unit::count, 7}),
    node_field<NODE_COPY>({"COPIES", "copies", Unit::count, 6}),
    node_field<NODE_SET>({"SETS", "memsets", Unit::count, 5}),
    node_field<NODE_HOST>({"HOST", "host_functions", Unit::count, 5}),
    {{"", "other_nodes", Unit::count},
     of_execs_in_json,
     [](const K&, const G& g, const C&) { return node_cell(g, NODE_OTHER); }},
    {{"CAPTURES", "captures", Unit::count, 8},
     where_many,
     [](const K&, const G& g, const C&) { return Cell(g.captures); }},
    {{"CAPT/s", "captures_per_second", Unit::rate, 6},
     in_summary,
     [](const K&, const G& g, const C& c) { return per_second(g.captures, c); }},
    {{"", "failed_captures", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.failed_captures); }},
    {{"INSTANT", "instantiates", Unit::count, 7},
     where_many,
     [](const K&, const G& g, const C&) { return Cell(g.instantiates); }},
    {{"INST/s", "instantiates_per_second", Unit::rate, 6},
     in_summary,
     [](const K&, const G& g, const C& c) { return per_second(g.instantiates, c); }},
    {{"GRAPHS", "live_graphs", Unit::count, 6},
     [](const C& c) { return unless_updated(c, in_summary(c)); },
     [](const K&, const G& g, const C& c) { return Cell(c.execs.live_graphs(g.who.images)); }},
    {{"EXECS", "live_execs", Unit::count, 6},
     in_summary,
     [](const K&, const G& g, const C& c) { return Cell(c.execs.live_execs(g.who.images)); }},
    {{"LAUNCHES", "launches", Unit::count, 8},
     [](const C& c) { return c.settings.exec ? unless_updated(c, Shown::both) : unless_summary(c); },
     [](const K&, const G& g, const C&) { return Cell(g.launches); }},
    {{"LAUNCH/s", "launches_per_second", Unit::rate, 8},
     always<C>,
     [](const K&, const G& g, const C& c) { return per_second(g.launches, c); }},
    {{"KERN/s", "kernels_per_second", Unit::rate, 9},
     always<C>,
     [](const K&, const G& g, const C& c) { return g.unknown ? Cell() : per_second(g.kernels, c); }},
    {{"", "kernels_launched", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.kernels); }},
    {{"", "unknown_launches", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.unknown); }},
    {{"", "captured", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.captured); }},
    {{"DIRECT", "direct_launches", Unit::count, 8},
     in_summary,
     [](const K&, const G& g, const C&) { return Cell(g.direct); },
     extra},
    {{"GRAPH%", "graph_percent", Unit::percent, 6},
     in_summary,
     [](const K&, const G& g, const C&) { return g.unknown ? Cell() : share(g.kernels, g.kernels + g.direct); }},
    {{"SETUP%", "setup_percent", Unit::percent, 6},
     in_summary,
     [](const K&, const G& g, const C& c) {
         return share(g.capture_ns + g.instantiate_ns, static_cast<uint64_t>(c.seconds * 1e9));
     }},
    {{"", "capture_ns", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.capture_ns); }},
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); },
     extra},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8},
     with_latency<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); }},
    {{"", "latency_max_ns", Unit::ns_as_us},
     latency_in_json<C>,
     [](const K&, const G& g, const C&) { return Cell(g.max_ns); }},
    {{"INST(us)", "instantiate_ns", Unit::ns_as_us, 9},
     of_execs,
     [](const K&, const G& g, const C&) {
         return g.exec && g.exec->exec.born_ns ? Cell(uint64_t{g.exec->exec.instantiate_ns}) : Cell();
     },
     extra},
    {{"", "instantiate_total_ns", Unit::count},
     [](const C& c) { return c.settings.exec ? Shown::no : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.instantiate_ns); }},
    {{"UPDATES", "updates", Unit::count, 7},
     where_updated,
     [](const K&, const G& g, const C&) { return Cell(g.updates); }},
    {{"REFUSED", "failed_updates", Unit::count, 7},
     where_updated,
     [](const K&, const G& g, const C&) { return Cell(g.failed_updates); }},
    {{"REASON", "update_reason", Unit::text, 20},
     where_updated,
     [](const K&, const G& g, const C&) { return g.reason ? Cell(std::string(update_reason(*g.reason))) : Cell(); },
     extra},
    {{"", "uploads", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.uploads); }},
    {{"", "parameter_sets", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.sets); }},
    {{"ERRORS", "errors", Unit::count, 6}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.errors); }},
    {{"AGE(s)", "age_ns", Unit::seconds, 9},
     [](const C& c) { return unless_updated(c, of_execs(c)); },
     [](const K&, const G& g, const C& c) {
         return g.exec && g.exec->exec.born_ns ? Cell(c.now_ns - g.exec->exec.born_ns) : Cell();
     }},
    {{"", "destroyed", Unit::count},
     [](const C&) { return Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.destroyed); }},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

Label label_of(const K& key, const G& group, const C& context)
{
    Label label;
    label.fields.emplace_back("measure", context.settings.measure);
    label.add_call(context.settings.view, key, group.who, context.processes, context.probes);
    if (group.exec)
        label.add("exec", fmt::format("0x{:x}", uint64_t{group.exec->exec.handle}));
    return label;
}

struct StormLine : ProcessLine {
    const Storm& storm;
};

const ProcessField<StormLine> storm_fields[] = {
    {{"", "event", Unit::text}, in_any_run, [](const StormLine&, const AnyRun&) { return Cell(std::string("storm")); }},
    {{"CAPTURES/min", "captures_per_minute", Unit::count, 12},
     in_any_run,
     [](const StormLine& l, const AnyRun&) { return Cell(l.storm.captures); }},
    {{"INSTANTIATIONS/min", "instantiates_per_minute", Unit::count, 18},
     in_any_run,
     [](const StormLine& l, const AnyRun&) { return Cell(l.storm.instantiates); }},
};

Cell nodes_of(const CallLine& line, uint32_t count)
{
    return line.call.graph.unknown ? Cell() : Cell(uint64_t{count});
}

using L = CallLine;

const Field<C, L> fields_of_lines[] = {
    line_layer<C, L>,
    line_vendor<C, L>,
    line_stream<C, L>,
    {{"CALL", "call", Unit::text, 12},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(graph_call_name(l.call.key.kind))); }},
    {{"GRAPH", "graph", Unit::hex, 14}, always<C>, [](const L& l, const C&) { return if_any(l.call.graph.graph); }},
    {{"EXEC", "exec", Unit::hex, 14}, always<C>, [](const L& l, const C&) { return if_any(l.call.graph.exec); }},
    {{"KERNELS", "kernels", Unit::count, 7},
     always<C>,
     [](const L& l, const C&) { return nodes_of(l, l.call.graph.kernels); }},
    {{"COPIES", "copies", Unit::count, 6},
     always<C>,
     [](const L& l, const C&) { return nodes_of(l, l.call.graph.copies); }},
    {{"OTHERS", "other_nodes", Unit::count, 6},
     always<C>,
     [](const L& l, const C&) { return nodes_of(l, l.call.graph.others); }},
    {{"", "update_reason", Unit::text},
     json_only<C>,
     [](const L& l, const C&) {
         const call_key& key = l.call.key;
         const bool refused = key.kind == KIND_GRAPH_UPDATE && key.result;
         return refused ? Cell(std::string(update_reason(key.graph.reason))) : Cell();
     }},
    line_latency<C, L>,
    line_result<C, L>,
    line_result_code<C, L>,
    line_captured<C, L>,
    line_function<C, L>,
};

} // namespace

void print_storm(Output& output, const Storm& storm, Processes& processes, uint64_t wall_ns, const Frames& frames)
{
    print_process_line<StormLine>(output, storm_fields, {{storm.image, processes, wall_ns}, storm}, frames);
}

std::span<const Field<Context, CallLine>> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(
        fields, options, sort,
        {{"line", columns_of_lines(line_fields())}, {"storm", process_line_columns<StormLine>(storm_fields)}});
}

void print_groups(Output& output, const GraphGroups& groups, Context context, uint64_t wall_ns,
                  const FramesOf<GraphKey, GraphGroup>& frames)
{
    for (const auto& [key, group] : groups.groups())
        context.updates |= group.updates || group.failed_updates;
    print_table<K, G, C>(
        output, fields, groups.groups(), context, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.launches); }, frames);
}

void print_histograms(Output& output, const GraphGroups& groups, const Context& context, uint64_t wall_ns)
{
    const bool nodes = context.settings.histogram_of == Measure::nodes;
    for (const auto& [key, group] : groups.groups()) {
        if (!group.duration.total())
            continue;
        const Label label = label_of(key, group, context);
        output.histogram(label.title, nodes ? "nodes" : context.options.unit_name(), group.duration, label.fields,
                         wall_ns);
    }
}

} // namespace gpusnoop::cudagraph
