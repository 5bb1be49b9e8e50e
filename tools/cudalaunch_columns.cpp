// SPDX-License-Identifier: Apache-2.0
#include "cudalaunch_columns.hpp"

#include "probes.hpp"
#include "text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop {
namespace {

Shown with_latency(const Context& c)
{
    return c.settings.latency ? Shown::both : Shown::no;
}

Shown with_results(const Context& c)
{
    return c.settings.latency || c.options.failed_only ? Shown::both : Shown::no;
}

Shown by_shape(const Context& c)
{
    return c.settings.view.kernel && !c.settings.view.stack ? Shown::both : Shown::no;
}

Shown not_by_kernel(const Context& c)
{
    return !c.settings.view.kernel ? Shown::both : Shown::no;
}

uint64_t product(const __u32 (&dimensions)[3])
{
    return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

// A percentile is known to its bucket; where the last launch lies in the same one, its exact size is the better answer.
// Else the bucket's lower end: sizes are round numbers, and those begin buckets.
Cell p95(const Histogram& histogram, uint64_t last)
{
    if (!histogram.total())
        return {};
    const unsigned bucket = histogram_bucket(histogram.percentile(0.95));
    return histogram_bucket(last) == bucket ? last : Histogram::bucket_low(bucket);
}

// The middle of the topmost bucket may lie beyond the largest value.
Cell latency(const Group& group, double share)
{
    return std::min(group.duration.percentile(share), group.max_ns);
}

Cell if_any(uint64_t n)
{
    return n ? Cell(n) : Cell();
}

using LaunchField = Field<GroupKey, Group, Context>;

const LaunchField fields[] = {
    {{"STREAM", "stream", Unit::hex, 14},
     [](const Context& c) { return c.settings.view.stream ? Shown::both : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) { return Cell(k.stream); }},
    {{"DEVICE", "device", Unit::count, 6},
     [](const Context& c) { return c.settings.view.device ? Shown::both : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) {
         return k.device == DEVICE_UNKNOWN ? Cell() : Cell(uint64_t{k.device});
     }},
    {{"LAYER", "layer", Unit::text, 7},
     [](const Context& c) { return c.settings.view.layer ? Shown::both : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) {
         return Cell(std::string(k.layer == LAYER_RUNTIME ? "runtime" : "driver"));
     }},
    {{"LAUNCHES", "", Unit::count, 9},
     [](const Context& c) { return c.settings.view.kernel ? Shown::text : Shown::no; },
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.calls()); }},
    {{"", "launches", Unit::count},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey& k, const Group& g, const Context&) {
         return k.kind == KIND_LAUNCH ? Cell(g.kernels) : Cell();
     }},
    {{"LAUNCHES", "launches", Unit::count, 9},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.kernels); }},
    {{"LAUNCH/s", "", Unit::rate, 9},
     [](const Context& c) { return c.settings.view.kernel ? Shown::text : Shown::no; },
     [](const GroupKey&, const Group& g, const Context& c) {
         return Cell(static_cast<double>(g.calls()) / c.seconds);
     }},
    {{"", "launches_per_second", Unit::rate},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey& k, const Group& g, const Context& c) {
         return k.kind == KIND_LAUNCH ? Cell(static_cast<double>(g.kernels) / c.seconds) : Cell();
     }},
    {{"LAUNCH/s", "launches_per_second", Unit::rate, 9},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context& c) {
         return Cell(static_cast<double>(g.kernels) / c.seconds);
     }},
    {{"CAPTURED", "captured", Unit::count, 8},
     [](const Context& c) { return c.captured ? Shown::both : Shown::json; },
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.captured); }},
    {{"GRAPHS", "graph_launches", Unit::count, 8},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.graphs); }},
    {{"HOSTFN", "host_functions", Unit::count, 8},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.host_functions); }},
    {{"", "graph_launches", Unit::count},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey&, const Group& g, const Context&) { return if_any(g.graphs); }},
    {{"", "host_functions", Unit::count},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey&, const Group& g, const Context&) { return if_any(g.host_functions); }},
    {{"ERRORS", "errors", Unit::count, 7},
     with_results,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.errors); }},
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.50); }},
    {{"", "latency_p95_ns", Unit::ns_as_us},
     [](const Context& c) { return c.settings.latency ? Shown::json : Shown::no; },
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.95); }},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.99); }},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 8},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.max_ns); }},
    {{"", "latency_total_ns", Unit::count},
     [](const Context& c) { return c.settings.latency ? Shown::json : Shown::no; },
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.total_ns); }},
    {{"GRID", "grid", Unit::dim3, 11},
     by_shape,
     [](const GroupKey&, const Group& g, const Context&) {
         return g.shaped && g.blocks.total() ? Cell(Dim3{g.shape.grid[0], g.shape.grid[1], g.shape.grid[2]}) : Cell();
     }},
    {{"p95", "blocks_p95", Unit::count, 6},
     by_shape,
     [](const GroupKey&, const Group& g, const Context&) { return p95(g.blocks, product(g.shape.grid)); }},
    {{"BLOCK", "block", Unit::dim3, 9},
     by_shape,
     [](const GroupKey&, const Group& g, const Context&) {
         return g.shaped && g.threads.total() ? Cell(Dim3{g.shape.block[0], g.shape.block[1], g.shape.block[2]})
                                              : Cell();
     }},
    {{"p95", "threads_p95", Unit::count, 5},
     by_shape,
     [](const GroupKey&, const Group& g, const Context&) { return p95(g.threads, product(g.shape.block)); }},
    {{"SMEM", "shared_memory_bytes", Unit::bytes, 6},
     by_shape,
     [](const GroupKey&, const Group& g, const Context&) {
         return g.shaped && g.blocks.total() ? Cell(uint64_t{g.shape.smem}) : Cell();
     }},
    {{"RESULT", "result", Unit::text, 28},
     [](const Context& c) { return c.settings.view.result ? Shown::both : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) {
         return Cell(result_name(k.layer == LAYER_RUNTIME ? Library::runtime : Library::driver, k.result));
     }},
    {{"", "result_code", Unit::count},
     [](const Context& c) { return c.settings.view.result ? Shown::json : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) { return Cell(int64_t{k.result}); }},
    {{"", "handle", Unit::hex},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) { return if_any(k.handle); }},
    {{"", "kernel", Unit::text},
     [](const Context& c) { return c.settings.view.kernel ? Shown::json : Shown::no; },
     [](const GroupKey& k, const Group&, const Context&) { return k.kernel.empty() ? Cell() : Cell(k.kernel); }},
    {{"KERNEL", "", Unit::text, 6},
     [](const Context& c) { return c.settings.view.kernel ? Shown::text : Shown::no; },
     [](const GroupKey& k, const Group&, const Context& c) {
         GroupKey shown = k; // shortened inside its brackets
         if (!c.options.full_names)
             shown.kernel = shorten_kernel(k.kernel, 48);
         return Cell(launch_name(shown));
     }},
};

} // namespace

void check_sort(const std::string& name)
{
    check_sort_column<GroupKey, Group, Context>(fields, name);
}

void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns, const Frames& frames)
{
    context.captured = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.captured != 0; });
    // By kernel, rows of graphs have no "launches", but calls.
    const std::string& sort = context.settings.sort;
    print_table<GroupKey, Group, Context>(
        output, fields, groups.groups(), context, wall_ns, sort == "launches" ? "" : sort,
        [](const Group& group) { return static_cast<double>(group.calls() + group.captured); }, frames);
}

} // namespace gpusnoop
