// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"
#include "rows/who.hpp"

namespace gpusnoop::cudagraph {
namespace {

using K = GraphKey;
using G = GraphGroup;
using C = Context;

using F = Field<C, K, G>;

constexpr auto of_execs = where_set<C, &Settings::exec>;
constexpr auto of_execs_in_json = where_set<C, &Settings::exec, Shown::json>;
constexpr auto in_summary = where_set<C, &Settings::summary>;

// Shows counts of captures and instantiations if rows are not single graphs. With --summary, text shows rates instead.
Shown where_many(const C& c)
{
    return c.settings.exec || c.settings.summary ? Shown::json : Shown::both;
}

Shown where_updated(const C& c)
{
    return c.updates ? Shown::both : Shown::json;
}

// Hides a column in text if the columns about updates are shown, to save width; --columns can still select it.
Shown unless_updated(const C& c, Shown where)
{
    return c.updates && where == Shown::both ? Shown::json : where;
}

// Returns null if the nodes are unknown, because the graph was created before this run.
const graph_nodes* nodes_of(const G& group)
{
    return group.exec && !group.exec->exec.nodes.unknown ? &group.exec->exec.nodes : nullptr;
}

template<graph_node node>
Cell node_cell(const K&, const G& g, const C&)
{
    const auto* nodes = nodes_of(g);
    return nodes ? Cell(uint64_t{nodes->count[node]}) : Cell();
}

bool has_birth(const G& g)
{
    return g.exec && g.exec->exec.born_ns;
}

constexpr F fields[] = {
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    vendor_field<K, G, C>,
    function_field<K, G, C>,
    {{"EXEC", "exec", Unit::hex, 14},
     of_execs,
     [](const K&, const G& g, const C&) { return g.exec ? Cell(uint64_t{g.exec->exec.handle}) : Cell(); },
     "Handle of the executable graph; this and the following fields down to other_nodes are shown if each row is one "
     "graph."},
    {{"", "exec_number", Unit::count},
     of_execs_in_json,
     [](const K& k, const G&, const C&) { return Cell(k.exec); },
     "Number of the executable graph, unique across all processes in this run."},
    {{"", "graph", Unit::hex},
     of_execs_in_json,
     [](const K&, const G& g, const C&) { return g.exec ? if_any(g.exec->exec.graph) : Cell(); },
     "Handle of the graph from which the executable graph was instantiated."},
    F{{"NODES", "nodes", Unit::count, 6},
      of_execs,
      [](const K&, const G& g, const C&) { return nodes_of(g) ? Cell(node_count(*nodes_of(g))) : Cell(); },
      "Number of nodes, including those of child graphs. `?` if the graph was created before tracing began."}
        .in_text([](const K&, const G& g, const C&) {
            return Cell(nodes_of(g) ? std::to_string(node_count(*nodes_of(g))) : std::string("?"));
        }),
    {{"KERNELS", "kernels", Unit::count, 7},
     of_execs,
     node_cell<NODE_KERNEL>,
     "Number of nodes of each kind; see `DESCRIPTION`.",
     extra},
    {{"COPIES", "copies", Unit::count, 6}, of_execs, node_cell<NODE_COPY>, "", extra},
    {{"SETS", "memsets", Unit::count, 5}, of_execs, node_cell<NODE_SET>, "", extra},
    {{"HOST", "host_functions", Unit::count, 5}, of_execs, node_cell<NODE_HOST>, "", extra},
    {{"", "other_nodes", Unit::count}, of_execs_in_json, node_cell<NODE_OTHER>},
    {{"CAPTURES", "captures", Unit::count, 8},
     where_many,
     count_of<&G::captures>,
     "Captures that ended with a graph. In text, this column and INSTANT are not shown if each row is one executable "
     "graph, because captures belong to none of them. With `--summary`, text shows CAPTURES, INSTANT and "
     "LAUNCHES only if `--columns` names them."},
    {{"CAPT/s", "captures_per_second", Unit::rate, 6},
     in_summary,
     rate_of<&G::captures>,
     "Captures per second; with `--summary`."},
    {{"", "failed_captures", Unit::count},
     json_only<C>,
     count_of<&G::failed_captures>,
     "Captures that ended with an error."},
    {{"INSTANT", "instantiates", Unit::count, 7},
     where_many,
     count_of<&G::instantiates>,
     "Instantiations that succeeded."},
    {{"INST/s", "instantiates_per_second", Unit::rate, 6},
     in_summary,
     rate_of<&G::instantiates>,
     "Instantiations per second; with `--summary`."},
    {{"GRAPHS", "live_graphs", Unit::count, 6},
     [](const C& c) { return unless_updated(c, in_summary(c)); },
     [](const K&, const G& g, const C& c) { return Cell(c.execs.live_graphs(g.who.images)); },
     "Number of graphs (GRAPHS) and of executable graphs (EXECS) that exist at the end of the interval. Shown with "
     "`--summary`. Graphs created before the run are not counted. Executable graphs created before the run are counted "
     "only if they were launched or changed since."},
    {{"EXECS", "live_execs", Unit::count, 6},
     in_summary,
     [](const K&, const G& g, const C& c) { return Cell(c.execs.live_execs(g.who.images)); }},
    {{"LAUNCHES", "launches", Unit::count, 8},
     [](const C& c) {
         return c.settings.exec ? unless_updated(c, Shown::both) : c.settings.summary ? Shown::json : Shown::both;
     },
     count_of<&G::launches>,
     "Graph launches that returned no error; with `--summary` and `-H nodes`, all graph launches, because their "
     "results are not read. Launches recorded into another graph are not included."},
    {{"LAUNCH/s", "launches_per_second", Unit::rate, 8}, always<C>, rate_of<&G::launches>, "Launches per second."},
    {{"KERN/s", "kernels_per_second", Unit::rate, 9},
     always<C>,
     [](const K&, const G& g, const C& c) { return g.unknown ? Cell() : per_second(g.kernels, c); },
     "Kernels that graph launches started, per second (KERN/s) and in total (kernels_launched). The rate is `-` if a "
     "launched graph has `?` nodes. The total does not include the kernels of such graphs."},
    {{"", "kernels_launched", Unit::count}, json_only<C>, count_of<&G::kernels>},
    {{"", "unknown_launches", Unit::count},
     json_only<C>,
     count_of<&G::unknown>,
     "Launches of graphs with unknown nodes (`?`)."},
    {{"", "captured", Unit::count},
     json_only<C>,
     count_of<&G::captured>,
     "Launches that were recorded into another graph."},
    {{"DIRECT", "direct_launches", Unit::count, 8},
     in_summary,
     count_of<&G::direct>,
     "Kernel launches without a graph. Failed launches count; launches recorded into a graph do not. A launch on "
     "several devices counts once. Shown with `--summary`.",
     extra},
    {{"GRAPH%", "graph_percent", Unit::percent, 6},
     in_summary,
     [](const K&, const G& g, const C&) { return g.unknown ? Cell() : share(g.kernels, g.kernels + g.direct); },
     "Share of kernels that came from graphs: kernels_launched / (kernels_launched + DIRECT). It is `-` if a launched "
     "graph has unknown nodes (`?`). Shown with `--summary`."},
    {{"SETUP%", "setup_percent", Unit::percent, 6},
     in_summary,
     [](const K&, const G& g, const C& c) {
         return share(g.capture_ns + g.instantiate_ns, static_cast<uint64_t>(c.seconds * 1e9));
     },
     "Time spent in captures (from begin to end) and instantiations, as a share of the interval. It can exceed 100 "
     "with several threads. Shown with `--summary`."},
    {{"", "capture_ns", Unit::count},
     json_only<C>,
     count_of<&G::capture_ns>,
     "Time from begin to end of captures that ended in the interval."},
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency<C>,
     duration_percentile<50>,
     "Median, 99th percentile and maximum of the time that a launch takes on the host, to within about 6%, including "
     "launches that fail. Not with `--summary`.",
     extra},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8}, with_latency<C>, duration_percentile<99>},
    {{"", "latency_max_ns", Unit::ns_as_us}, latency_in_json<C>, count_of<&G::max_ns>},
    {{"INST(us)", "instantiate_ns", Unit::ns_as_us, 9},
     of_execs,
     [](const K&, const G& g, const C&) { return has_birth(g) ? Cell(uint64_t{g.exec->exec.instantiate_ns}) : Cell(); },
     "Duration of the instantiation of this executable graph.",
     extra},
    {{"", "instantiate_total_ns", Unit::count},
     [](const C& c) { return c.settings.exec ? Shown::no : Shown::json; },
     count_of<&G::instantiate_ns>,
     "Time spent in instantiations. Shown only if rows are not single executable graphs."},
    {{"UPDATES", "updates", Unit::count, 7},
     where_updated,
     count_of<&G::updates>,
     "Updates that succeeded. This column and the next two appear only if there are updates."},
    {{"REFUSED", "failed_updates", Unit::count, 7},
     where_updated,
     count_of<&G::failed_updates>,
     "Updates that were refused."},
    {{"REASON", "update_reason", Unit::text, 20},
     where_updated,
     [](const K&, const G& g, const C&) { return g.reason ? Cell(std::string(update_reason(*g.reason))) : Cell(); },
     "Reason for the last refusal; see `DESCRIPTION`.",
     extra},
    {{"", "uploads", Unit::count}, json_only<C>, count_of<&G::uploads>, "Calls of cuGraphUpload."},
    {{"", "parameter_sets", Unit::count},
     json_only<C>,
     count_of<&G::sets>,
     "Calls that change a node of the executable graph: its parameters, or whether it is enabled."},
    {{"ERRORS", "errors", Unit::count, 6},
     always<C>,
     count_of<&G::errors>,
     "Calls of any kind that returned an error."},
    {{"AGE(s)", "age_ns", Unit::seconds, 9},
     [](const C& c) { return unless_updated(c, of_execs(c)); },
     [](const K&, const G& g, const C& c) { return has_birth(g) ? Cell(c.now_ns - g.exec->exec.born_ns) : Cell(); },
     "Time since the instantiation."},
    {{"", "destroyed", Unit::count}, json_only<C>, count_of<&G::destroyed>, "Executable graphs that were destroyed."},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

struct StormLine : ProcessLine {
    const Storm& storm;
};

const ProcessField<StormLine> storm_fields[] = {
    {{"", "event", Unit::text},
     in_any_run,
     [](const StormLine&, const AnyRun&) { return Cell(std::string("storm")); },
     "Always `storm`."},
    {{"CAPTURES/min", "captures_per_minute", Unit::count, 12},
     in_any_run,
     [](const StormLine& l, const AnyRun&) { return Cell(l.storm.captures); },
     "Numbers of captures and of instantiations in the last minute. Failed calls count. Calls during the warm-up do "
     "not count."},
    {{"INSTANTIATIONS/min", "instantiates_per_minute", Unit::count, 18},
     in_any_run,
     [](const StormLine& l, const AnyRun&) { return Cell(l.storm.instantiates); }},
};

template<auto count>
Cell line_nodes(const CallLine& line, const LineContext&)
{
    return line.call.graph.unknown ? Cell() : Cell(uint64_t{line.call.graph.*count});
}

using Nodes = decltype(call_event::graph);

constexpr LineField fields_of_lines[] = {
    line_layer,
    line_vendor,
    line_stream,
    {{"CALL", "call", Unit::text, 12},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(std::string(graph_call_name(l.call.key.kind))); },
     "`begin` and `capture` (begin and end of a capture), `create` (also a clone), `add` (a node), `destroy`, "
     "`instantiate`, `upload`, `update`, `set` (cuGraphExecKernelNodeSetParams and the like), `launch`, "
     "`exec-destroy`. Calls that become nodes under capture have no line."},
    {{"GRAPH", "graph", Unit::hex, 14},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return if_any(l.call.graph.graph); },
     "Handles of the graph (GRAPH) and of the executable graph (EXEC) that the call concerns, if any. The graph is the "
     "one that a capture produced, that a node was added to, that was instantiated, or that an update applies."},
    {{"EXEC", "exec", Unit::hex, 14},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return if_any(l.call.graph.exec); }},
    {{"KERNELS", "kernels", Unit::count, 7},
     always<LineContext>,
     line_nodes<&Nodes::kernels>,
     "Numbers of nodes after the call: in the executable graph or, if the call concerns none, in the graph. COPIES "
     "includes memsets, and OTHERS includes host functions."},
    {{"COPIES", "copies", Unit::count, 6}, always<LineContext>, line_nodes<&Nodes::copies>},
    {{"OTHERS", "other_nodes", Unit::count, 6}, always<LineContext>, line_nodes<&Nodes::others>},
    {{"", "update_reason", Unit::text},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) {
         const call_key& key = l.call.key;
         const bool refused = key.kind == KIND_GRAPH_UPDATE && key.result;
         return refused ? Cell(std::string(update_reason(key.graph.reason))) : Cell();
     },
     "Reason for the refusal of an update."},
    line_latency,
    line_result,
    line_result_code,
    line_captured,
    line_function,
};

void print_histograms(Output& output, const GraphGroups& groups, const Context& context, uint64_t wall_ns)
{
    const bool nodes = context.settings.histogram_of == Measure::nodes;
    print_call_histograms(output, groups.groups(), &G::duration, nodes ? "nodes" : context.options.unit_name(), context,
                          wall_ns, [](Label& label, const K&, const G& group) {
                              if (group.exec)
                                  label.add("exec", fmt::format("0x{:x}", uint64_t{group.exec->exec.handle}));
                          });
}

} // namespace

void print_storm(Output& output, const Storm& storm, Processes& processes, uint64_t wall_ns, const Frames& frames)
{
    print_process_line<StormLine>(output, storm_fields, {{storm.image, processes, wall_ns}, storm}, frames);
}

std::span<const LineField> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(
        fields, options, sort,
        {{"line", columns_of_lines(line_fields())}, {"storm", process_line_columns<StormLine>(storm_fields)}});
}

void print_groups(Output& output, const GraphGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    for (const auto& [key, group] : groups.groups())
        context.updates |= group.updates || group.failed_updates;
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, context.settings.sort,
                         [](const G& group) { return static_cast<double>(group.launches); });
}

} // namespace gpusnoop::cudagraph
