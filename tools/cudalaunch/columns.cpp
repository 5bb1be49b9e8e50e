// SPDX-License-Identifier: Apache-2.0
#include "tools/cudalaunch/columns.hpp"

#include "rows/call_fields.hpp"

#include <algorithm>

namespace gpusnoop::cudalaunch {
namespace {

Shown by_shape(const Context& c)
{
    return c.settings.kernel && c.settings.shapes && !c.settings.view.stack ? Shown::both : Shown::no;
}

Shown by_shape_in_json(const Context& c)
{
    return by_shape(c) == Shown::no ? Shown::no : Shown::json;
}

Shown not_by_kernel(const Context& c)
{
    return !c.settings.kernel ? Shown::both : Shown::no;
}

uint64_t product(const __u32 (&dimensions)[3])
{
    return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

// A percentile is known to its bucket; where the last launch lies in the same one, its exact size is the better answer.
// Else the bucket's lower end: sizes are round numbers, and those begin buckets.
Cell percentile(const Histogram& histogram, double share, uint64_t last)
{
    if (!histogram.total())
        return {};
    const unsigned bucket = histogram_bucket(histogram.percentile(share));
    return histogram_bucket(last) == bucket ? last : Histogram::bucket_low(bucket);
}

// Launches, or with --graphs expand what they start.
uint64_t calls(const LaunchGroup& g, const Context& c)
{
    return c.settings.expands_graphs() ? g.calls() - g.graphs + g.graphs_unknown + g.graph_kernels : g.calls();
}

uint64_t kernels(const LaunchGroup& g, const Context& c)
{
    return g.kernels + (c.settings.expands_graphs() ? g.graph_kernels : 0);
}

using LaunchField = Field<Context, LaunchKey, LaunchGroup>;

const LaunchField fields[] = {
    sampled_field<LaunchKey, LaunchGroup, Context>,
    sampled_error_field<LaunchKey, LaunchGroup, Context>,
    stream_field<LaunchKey, LaunchGroup, Context>,
    device_field<LaunchKey, LaunchGroup, Context>,
    layer_field<LaunchKey, LaunchGroup, Context>,
    vendor_field<LaunchKey, LaunchGroup, Context>,
    function_field<LaunchKey, LaunchGroup, Context>,
    {of_calls({"LAUNCHES", "", Unit::count, 9}),
     [](const Context& c) { return c.settings.kernel ? Shown::text : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context& c) { return Cell(calls(g, c)); }},
    {of_calls({"", "launches", Unit::count}),
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup& g, const Context&) {
         return k.kind == KIND_LAUNCH ? Cell(g.kernels) : Cell();
     }},
    {of_calls({"LAUNCHES", "launches", Unit::count, 9}), not_by_kernel,
     [](const LaunchKey&, const LaunchGroup& g, const Context& c) { return Cell(kernels(g, c)); }},
    {of_calls({"LAUNCH/s", "", Unit::rate, 9}),
     [](const Context& c) { return c.settings.kernel ? Shown::text : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context& c) {
         return Cell(static_cast<double>(calls(g, c)) / c.seconds);
     }},
    {of_calls({"", "launches_per_second", Unit::rate}),
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup& g, const Context& c) {
         return k.kind == KIND_LAUNCH ? Cell(static_cast<double>(g.kernels) / c.seconds) : Cell();
     }},
    {of_calls({"LAUNCH/s", "launches_per_second", Unit::rate, 9}), not_by_kernel,
     [](const LaunchKey&, const LaunchGroup& g, const Context& c) {
         return Cell(static_cast<double>(kernels(g, c)) / c.seconds);
     }},
    {of_calls({"CAPTURED", "captured", Unit::count, 8}),
     [](const Context& c) { return c.captured ? Shown::both : Shown::json; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return Cell(g.captured); }},
    {of_calls({"GRAPHS", "graph_launches", Unit::count, 8}), not_by_kernel,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return Cell(g.graphs); }},
    {of_calls({"GRAPHKERN", "", Unit::count, 9}),
     [](const Context& c) { return c.graphs && c.settings.graphs == "both" ? Shown::text : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return g.graphs && g.graphs == g.graphs_unknown ? Cell() : Cell(g.graph_kernels);
     }},
    {of_calls({"", "graph_kernels", Unit::count}),
     [](const Context& c) { return c.settings.follows_graphs() ? Shown::json : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return g.graphs ? Cell(g.graph_kernels) : Cell(); }},
    {of_calls({"", "graph_launches_unknown", Unit::count}),
     [](const Context& c) { return c.settings.follows_graphs() ? Shown::json : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return g.graphs ? Cell(g.graphs_unknown) : Cell(); }},
    {of_calls({"HOSTFN", "host_functions", Unit::count, 8}), not_by_kernel,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return Cell(g.host_functions); }},
    {of_calls({"", "graph_launches", Unit::count}),
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return if_any(g.graphs); }},
    {of_calls({"", "host_functions", Unit::count}),
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return if_any(g.host_functions); }},
    errors_field<LaunchKey, LaunchGroup, Context>,
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency<Context>,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return duration_cell(g, 0.50); }},
    {{"", "latency_p95_ns", Unit::ns_as_us},
     latency_in_json<Context>,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return duration_cell(g, 0.95); }},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8},
     with_latency<Context>,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return duration_cell(g, 0.99); }},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 8},
     with_latency<Context>,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return Cell(g.max_ns); }},
    {{"", "latency_total_ns", Unit::count},
     latency_in_json<Context>,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) { return Cell(g.total_ns); }},
    {{"GRID", "grid", Unit::dim3, 11},
     by_shape,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return g.shaped && g.blocks.total() ? Cell(Dim3{g.shape.grid[0], g.shape.grid[1], g.shape.grid[2]}) : Cell();
     }},
    {{"", "blocks_p50", Unit::count},
     by_shape_in_json,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return percentile(g.blocks, 0.50, product(g.shape.grid));
     }},
    {{"p95", "blocks_p95", Unit::count, 6},
     by_shape,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return percentile(g.blocks, 0.95, product(g.shape.grid));
     }},
    {{"BLOCK", "block", Unit::dim3, 9},
     by_shape,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return g.shaped && g.threads.total() ? Cell(Dim3{g.shape.block[0], g.shape.block[1], g.shape.block[2]})
                                              : Cell();
     }},
    {{"", "threads_p50", Unit::count},
     by_shape_in_json,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return percentile(g.threads, 0.50, product(g.shape.block));
     }},
    {{"p95", "threads_p95", Unit::count, 5},
     by_shape,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return percentile(g.threads, 0.95, product(g.shape.block));
     }},
    {{"SMEM", "shared_memory_bytes", Unit::bytes, 6},
     by_shape,
     [](const LaunchKey&, const LaunchGroup& g, const Context&) {
         return g.shaped && g.blocks.total() ? Cell(uint64_t{g.shape.smem}) : Cell();
     }},
    result_field<LaunchKey, LaunchGroup, Context>,
    result_code_field<LaunchKey, LaunchGroup, Context>,
    {{"", "handle", Unit::hex},
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup&, const Context&) { return if_any(k.handle); }},
    {{"", "kernel", Unit::text},
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup&, const Context&) { return k.kernel.empty() ? Cell() : Cell(k.kernel); }},
    {{"", "name_source", Unit::text},
     [](const Context& c) { return c.settings.kernel ? Shown::json : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup& g, const Context&) {
         return k.kernel.empty() ? Cell() : Cell(std::string(source_name(g.name_source)));
     }},
    {{"KERNEL", "", Unit::text, 6},
     [](const Context& c) { return c.settings.kernel ? Shown::text : Shown::no; },
     [](const LaunchKey& k, const LaunchGroup&, const Context& c) {
         return Cell(shown_name(k, c.settings.names.form));
     }},
};

bool shaped(const call_event& call)
{
    return call.key.kind == KIND_LAUNCH && call.key.launch.blocks != BUCKET_NONE;
}

Cell dimensions(const __u32 (&xyz)[3])
{
    return Dim3{xyz[0], xyz[1], xyz[2]};
}

std::string name_of_line(const LaunchLine& line)
{
    const call_key& key = line.call.key;
    LaunchKey what;
    what.kind = key.kind;
    what.handle = key.subject;
    what.kernel = line.kernel.text;
    const std::string name = launch_name(what);
    return key.flags & CALL_RECORDED ? name + " [captured]" : name;
}

using L = LaunchLine;

const Field<Context, L> fields_of_lines[] = {
    line_layer<Context, L>,
    line_vendor<Context, L>,
    line_stream<Context, L>,
    {{"GRID", "grid", Unit::dim3, 11},
     always<Context>,
     [](const L& l, const Context&) { return shaped(l.call) ? dimensions(l.call.shape.grid) : Cell(); }},
    {{"BLOCK", "block", Unit::dim3, 9},
     always<Context>,
     [](const L& l, const Context&) {
         return shaped(l.call) && l.call.key.launch.threads != BUCKET_NONE ? dimensions(l.call.shape.block) : Cell();
     }},
    {{"SMEM", "shared_memory_bytes", Unit::bytes, 6},
     always<Context>,
     [](const L& l, const Context&) { return shaped(l.call) ? Cell(uint64_t{l.call.shape.smem}) : Cell(); }},
    line_latency<Context, L>,
    line_result<Context, L>,
    line_result_code<Context, L>,
    line_captured<Context, L>,
    {{"", "function", Unit::text},
     json_only<Context>,
     [](const L& l, const Context& c) { return function_name(c.probes, l.call.key.function); }},
    {{"", "handle", Unit::hex},
     json_only<Context>,
     [](const L& l, const Context&) { return Cell(uint64_t{l.call.key.subject}); }},
    {{"", "kernel", Unit::text},
     json_only<Context>,
     [](const L& l, const Context&) { return l.kernel.text.empty() ? Cell() : Cell(l.kernel.text); }},
    {{"", "name_source", Unit::text},
     json_only<Context>,
     [](const L& l, const Context&) {
         return l.kernel.text.empty() ? Cell() : Cell(std::string(source_name(l.kernel.source)));
     }},
    {{"KERNEL", "", Unit::text, 6},
     [](const Context&) { return Shown::text; },
     [](const L& l, const Context&) { return Cell(name_of_line(l)); }},
};

} // namespace

std::span<const Field<Context, LaunchLine>> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<LaunchKey, LaunchGroup, Context>(fields, options, sort,
                                                            {{"line", columns_of_lines(line_fields())}});
}

void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns, const Frames& frames)
{
    context.captured = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.captured != 0; });
    context.graphs = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.graphs != 0; });
    // By kernel, rows of graphs and of host functions have neither of these keys, but calls, which the text shows.
    std::string sort = context.settings.sort;
    if (sort == "launches")
        sort.clear();
    else if (sort == "launches_per_second")
        sort = "LAUNCH/s";
    print_table<LaunchKey, LaunchGroup, Context>(
        output, fields, groups.groups(), context, wall_ns, sort,
        [&](const LaunchGroup& group) { return static_cast<double>(calls(group, context) + group.captured); }, frames);
}

} // namespace gpusnoop::cudalaunch
