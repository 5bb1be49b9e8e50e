// SPDX-License-Identifier: Apache-2.0
#include "tools/cudalaunch/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"

#include <algorithm>
#include <optional>

namespace gpusnoop::cudalaunch {
namespace {

using K = LaunchKey;
using G = LaunchGroup;
using C = Context;
using F = Field<C, K, G>;

template<Shown where>
Shown by_shape(const C& c)
{
    return c.settings.kernel && c.settings.shapes && !c.settings.view.stack ? where : Shown::no;
}

constexpr auto by_kernel = where_set<C, &Settings::kernel>;
constexpr auto by_kernel_in_json = where_set<C, &Settings::kernel, Shown::json>;

Shown unless_by_kernel(const C& c)
{
    return c.settings.kernel ? Shown::json : Shown::both;
}

Shown where_followed(const C& c)
{
    if (!c.settings.follows_graphs())
        return Shown::no;
    return c.graphs && c.settings.graphs == "both" ? Shown::both : Shown::json;
}

Shown followed_in_json(const C& c)
{
    return c.settings.follows_graphs() ? Shown::json : Shown::no;
}

uint64_t product(const __u32 (&dimensions)[3])
{
    return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

Cell dimensions(const __u32 (&xyz)[3])
{
    return Dim3{xyz[0], xyz[1], xyz[2]};
}

// Only the percentile's bucket is known. If the size of the last launch is in that bucket, the percentile is estimated
// as that size. Otherwise it is estimated as the bucket's lower bound, because buckets begin at round numbers, and most
// sizes are round numbers.
Cell percentile(const Histogram& histogram, double share, uint64_t last)
{
    if (!histogram.total())
        return {};
    const unsigned bucket = histogram_bucket(histogram.percentile(share));
    return histogram_bucket(last) == bucket ? last : Histogram::bucket_low(bucket);
}

template<int percent>
Cell blocks(const K&, const G& g, const C&)
{
    return percentile(g.blocks, percent / 100.0, product(g.shape.grid));
}

template<int percent>
Cell threads(const K&, const G& g, const C&)
{
    return percentile(g.threads, percent / 100.0, product(g.shape.block));
}

// Number of launches. With --graphs expand, the launch of a graph counts as the kernels that it starts.
uint64_t calls(const G& g, const C& c)
{
    return c.settings.expands_graphs() ? g.calls() - g.graphs + g.graphs_unknown + g.graph_kernels : g.calls();
}

// If rows are grouped by kernel, graphs and host functions have rows of their own. For these rows, the text column
// LAUNCHES has the number of launches of the graph or host function, but JSON has no key `launches`.
uint64_t launches(const G& g, const C& c)
{
    if (c.settings.kernel)
        return calls(g, c);
    return g.kernels + (c.settings.expands_graphs() ? g.graph_kernels : 0);
}

std::optional<uint64_t> kernels(const K& k, const G& g, const C& c)
{
    if (c.settings.kernel)
        return k.kind == KIND_LAUNCH ? std::optional(g.kernels) : std::nullopt;
    return launches(g, c);
}

constexpr auto fields = fields_of<F>(
    {
        sampled_field<K, G, C>,
        sampled_error_field<K, G, C>,
        stream_field<K, G, C>,
        device_field<K, G, C>,
        layer_field<K, G, C>,
        vendor_field<K, G, C>,
        function_field<K, G, C>,
        F{of_calls({"LAUNCHES", "launches", Unit::count, 9}), always<C>,
          [](const K& k, const G& g, const C& c) { return cell_if(kernels(k, g, c)); },
          "Kernel launches, not counting captured launches. If rows are grouped by kernel, graphs and host functions "
          "have their own rows. There, LAUNCHES counts launches of the graph or host function; JSON has no key "
          "`launches`."}
            .in_text([](const K&, const G& g, const C& c) { return Cell(launches(g, c)); }, Unit::count),
        F{of_calls({"LAUNCH/s", "launches_per_second", Unit::rate, 9}), always<C>,
          [](const K& k, const G& g, const C& c) {
              const auto n = kernels(k, g, c);
              return n ? per_second(*n, c) : Cell();
          },
          "Kernel launches per second of the interval."}
            .in_text([](const K&, const G& g, const C& c) { return per_second(launches(g, c), c); }, Unit::rate),
        {of_calls({"CAPTURED", "captured", Unit::count, 8}),
         [](const C& c) { return c.captured ? Shown::both : Shown::json; }, count_of<&G::captured>,
         "Launches into a stream under capture: they become part of a graph and do not run now. The column appears "
         "only if there are such launches."},
        {of_calls({"GRAPHS", "graph_launches", Unit::count, 8}),
         [](const C& c) { return c.settings.kernel ? Shown::no : Shown::both; }, count_of<&G::graphs>,
         "Launches of whole graphs."},
        F{of_calls({"GRAPHKERN", "graph_kernels", Unit::count, 9}), where_followed,
          [](const K&, const G& g, const C&) { return g.graphs ? Cell(g.graph_kernels) : Cell(); },
          "Kernels that graph launches started: the kernel nodes of each graph, known from its capture or from the "
          "calls that built it. The column appears when graphs are launched; with `--graphs expand` the kernels are in "
          "LAUNCHES instead."}
            .in_text([](const K&, const G& g,
                        const C&) { return g.graphs && g.graphs == g.graphs_unknown ? Cell() : Cell(g.graph_kernels); },
                     Unit::count),
        {of_calls({"", "graph_launches_unknown", Unit::count}), followed_in_json,
         [](const K&, const G& g, const C&) { return g.graphs ? Cell(g.graphs_unknown) : Cell(); },
         "Launches of graphs that were created before tracing began. The kernels of such launches are not counted."},
        {of_calls({"", "graph_launches", Unit::count}), by_kernel_in_json,
         [](const K&, const G& g, const C&) { return if_any(g.graphs); },
         "Only if rows are grouped by kernel, and only in rows of graphs: how often the graph was launched."},
        {of_calls({"HOSTFN", "host_functions", Unit::count, 8}), unless_by_kernel,
         [](const K&, const G& g, const C& c) {
             return c.settings.kernel ? if_any(g.host_functions) : Cell(g.host_functions);
         },
         "Host functions and callbacks added to streams."},
        errors_field<K, G, C>,
    },
    latency_fields<K, G, C>,
    {
        {{"GRID", "grid", Unit::dim3, 11},
         by_shape<Shown::both>,
         [](const K&, const G& g, const C&) {
             return g.shaped && g.blocks.total() ? dimensions(g.shape.grid) : Cell();
         },
         "Grid size of the last launch, in blocks: x,y,z."},
        {{"", "blocks_p50", Unit::count},
         by_shape<Shown::json>,
         blocks<50>,
         "Median and 95th percentile of the blocks per launch, to within about 6%."},
        {{"p95", "blocks_p95", Unit::count, 6}, by_shape<Shown::both>, blocks<95>},
        {{"BLOCK", "block", Unit::dim3, 9},
         by_shape<Shown::both>,
         [](const K&, const G& g, const C&) {
             return g.shaped && g.threads.total() ? dimensions(g.shape.block) : Cell();
         },
         "Block size of the last launch, in threads: x,y,z."},
        {{"", "threads_p50", Unit::count},
         by_shape<Shown::json>,
         threads<50>,
         "Median and 95th percentile of the threads per block, to within about 6%."},
        {{"p95", "threads_p95", Unit::count, 5}, by_shape<Shown::both>, threads<95>},
        {{"SMEM", "shared_memory_bytes", Unit::bytes, 6},
         by_shape<Shown::both>,
         [](const K&, const G& g, const C&) {
             return g.shaped && g.blocks.total() ? Cell(uint64_t{g.shape.smem}) : Cell();
         },
         "Dynamic shared memory per block of the last launch."},
        result_field<K, G, C>,
        result_code_field<K, G, C>,
        {{"", "handle", Unit::hex},
         by_kernel_in_json,
         [](const K& k, const G&, const C&) { return if_any(k.handle); },
         "Handle of the kernel, graph or host function."},
        F{{"KERNEL", "kernel", Unit::text, 6},
          by_kernel,
          [](const K& k, const G&, const C&) { return k.kernel.empty() ? Cell() : Cell(k.kernel); },
          "Name of the kernel, or its handle while the name is unknown. Tables omit parts of the name that do not "
          "distinguish it from others. `[graph` HANDLE`]` is the launch of a graph, `[host function` NAME`]` a host "
          "function."}
            .in_text([](const K& k, const G&, const C& c) { return Cell(shown_name(k, c.settings.names.form)); }),
        {{"", "name_source", Unit::text},
         by_kernel_in_json,
         [](const K& k, const G& g, const C&) {
             return k.kernel.empty() ? Cell() : Cell(std::string(source_name(g.name_source)));
         },
         "How the name was found; a row shows the least certain source among its launches."},
    });

bool shaped(const call_event& call)
{
    return call.key.kind == KIND_LAUNCH && call.key.launch.blocks != BUCKET_NONE;
}

std::string name_of_line(const CallLine& line)
{
    const call_key& key = line.call.key;
    LaunchKey launch;
    launch.kind = key.kind;
    launch.handle = key.subject;
    launch.kernel = line.kernel.text;
    const std::string name = launch_name(launch);
    return key.flags & CALL_RECORDED ? name + " [captured]" : name;
}

constexpr LineField fields_of_lines[] = {
    line_layer,
    line_vendor,
    line_stream,
    {{"GRID", "grid", Unit::dim3, 11},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return shaped(l.call) ? dimensions(l.call.shape.grid) : Cell(); },
     "Grid size, in blocks: x,y,z."},
    {{"BLOCK", "block", Unit::dim3, 9},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return shaped(l.call) && l.call.key.launch.threads != BUCKET_NONE ? dimensions(l.call.shape.block) : Cell();
     },
     "Block size, in threads: x,y,z."},
    {{"SMEM", "shared_memory_bytes", Unit::bytes, 6},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return shaped(l.call) ? Cell(uint64_t{l.call.shape.smem}) : Cell(); },
     "Dynamic shared memory per block."},
    line_latency,
    line_result,
    line_result_code,
    line_captured,
    {{"", "function", Unit::text},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext& c) { return function_name(c.probes, l.call.key.function); },
     about_function},
    {{"", "handle", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.key.subject}); },
     "Handle of the kernel, graph or host function."},
    LineField{
        {"KERNEL", "kernel", Unit::text, 6},
        always<LineContext>,
        [](const CallLine& l, const LineContext&) { return l.kernel.text.empty() ? Cell() : Cell(l.kernel.text); },
        "Name of the kernel, graph or host function, as in tables. In text, `[captured]` follows the name of a launch "
        "under capture."}
        .in_text([](const CallLine& l, const LineContext&) { return Cell(name_of_line(l)); }),
    {{"", "name_source", Unit::text},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return l.kernel.text.empty() ? Cell() : Cell(std::string(source_name(l.kernel.source)));
     }},
};

void print_histograms(Output& output, const LaunchGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Measure measure = context.settings.histogram_of;
    const auto add_kernel = [&](Label& label, const K& key, const G&) {
        if (context.settings.kernel)
            label.add("kernel", launch_name(key));
    };
    const auto print = [&](Histogram G::*measured, std::string_view unit) {
        print_call_histograms(output, groups.groups(), measured, unit, context, wall_ns, add_kernel, true);
    };
    if (measure == Measure::grid)
        print(&G::blocks, "blocks");
    else if (measure == Measure::block)
        print(&G::threads, "threads");
    else
        print(&G::duration, context.options.unit_name());
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

void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    context.captured = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.captured != 0; });
    context.graphs = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.graphs != 0; });
    // Rows of graphs and host functions lack the keys "launches" and "launches_per_second", so rows cannot be sorted by
    // these keys. Sort by the text columns LAUNCHES and LAUNCH/s instead, which have values in all rows.
    std::string sort = context.settings.sort;
    if (sort == "launches")
        sort.clear();
    else if (sort == "launches_per_second")
        sort = "LAUNCH/s";
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, sort, [&](const LaunchGroup& group) {
        return static_cast<double>(calls(group, context) + group.captured);
    });
}

} // namespace gpusnoop::cudalaunch
