// SPDX-License-Identifier: Apache-2.0
#include "cudalaunch_columns.hpp"

#include "probes.hpp"
#include "text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop {
namespace {

// One column: what it is, when it is shown, and what it shows.
struct Field {
    Column column;
    bool (*shown)(const Context&);
    Cell (*value)(const GroupKey&, const Group&, const Context&);
};

bool always(const Context&)
{
    return true;
}

bool with_latency(const Context& c)
{
    return c.settings.latency;
}

bool with_results(const Context& c)
{
    return c.settings.latency || c.options.failed_only;
}

bool by_kernel(const Context& c)
{
    return c.settings.view.kernel;
}

bool by_shape(const Context& c)
{
    return c.settings.view.kernel && !c.settings.view.stack;
}

bool not_by_kernel(const Context& c)
{
    return !c.settings.view.kernel;
}

uint64_t product(const __u32 (&dimensions)[3])
{
    return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

// A percentile is known to its bucket; where the last launch lies in the same one, its exact size is the better answer.
Cell p95(const Histogram& histogram, uint64_t last)
{
    if (!histogram.total())
        return {};
    const uint64_t value = histogram.percentile(0.95);
    return histogram_bucket(last) == histogram_bucket(value) ? last : value;
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

std::optional<uint32_t> only_pid(const Group& group)
{
    const uint32_t first = group.images.begin()->pid;
    return std::ranges::all_of(group.images, [first](const ImageId& i) { return i.pid == first; })
               ? std::optional(first)
               : std::nullopt;
}

Cell pid_of(const GroupKey&, const Group& group, const Context&)
{
    auto pid = only_pid(group);
    return pid ? Cell(uint64_t{*pid}) : Cell();
}

Cell comm_of(const GroupKey& key, const Group& group, const Context& c)
{
    if (!key.comm.empty())
        return key.comm;
    if (!only_pid(group))
        return {};
    const std::string& comm = c.processes.info(*group.images.rbegin()).comm;
    return comm.empty() ? Cell() : Cell(comm);
}

const Field fields[] = {
    {{"PID", "pid", Unit::count, 7}, [](const Context& c) { return c.settings.view.pid; }, pid_of},
    {{"", "pid", Unit::count, 0, false}, [](const Context& c) { return !c.settings.view.pid; }, pid_of},
    {{"TID", "tid", Unit::count, 7},
     [](const Context& c) { return c.settings.view.thread; },
     [](const GroupKey& k, const Group&, const Context&) { return Cell(uint64_t{k.tid}); }},
    {{"COMM", "comm", Unit::text, 15},
     [](const Context& c) { return c.settings.view.pid || c.settings.view.comm; },
     comm_of},
    {{"", "comm", Unit::text, 0, false},
     [](const Context& c) { return !c.settings.view.pid && !c.settings.view.comm; },
     comm_of},
    {{"PROCS", "processes", Unit::count, 5, false},
     always,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(uint64_t{g.images.size()}); }},
    {{"STREAM", "stream", Unit::hex, 14},
     [](const Context& c) { return c.settings.view.stream; },
     [](const GroupKey& k, const Group&, const Context&) { return Cell(k.stream); }},
    {{"DEVICE", "device", Unit::count, 6},
     [](const Context& c) { return c.settings.view.device; },
     [](const GroupKey& k, const Group&, const Context&) {
         return k.device == DEVICE_UNKNOWN ? Cell() : Cell(uint64_t{k.device});
     }},
    {{"LAYER", "layer", Unit::text, 7},
     [](const Context& c) { return c.settings.view.layer; },
     [](const GroupKey& k, const Group&, const Context&) {
         return Cell(std::string(k.layer == LAYER_RUNTIME ? "runtime" : "driver"));
     }},
    {{"LAUNCHES", "", Unit::count, 9, true, false},
     by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.calls()); }},
    {{"", "launches", Unit::count, 0, false},
     by_kernel,
     [](const GroupKey& k, const Group& g, const Context&) {
         return k.kind == KIND_LAUNCH ? Cell(g.kernels) : Cell();
     }},
    {{"LAUNCHES", "launches", Unit::count, 9},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.kernels); }},
    {{"LAUNCH/s", "launches_per_second", Unit::rate, 9},
     always,
     [](const GroupKey&, const Group& g, const Context& c) {
         return Cell(static_cast<double>(g.calls()) / c.seconds);
     }},
    {{"CAPTURED", "captured", Unit::count, 8},
     [](const Context& c) { return c.captured; },
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.captured); }},
    {{"", "captured", Unit::count, 0, false},
     [](const Context& c) { return !c.captured; },
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.captured); }},
    {{"GRAPHS", "graph_launches", Unit::count, 8},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.graphs); }},
    {{"HOSTFN", "host_functions", Unit::count, 8},
     not_by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.host_functions); }},
    {{"", "graph_launches", Unit::count, 0, false},
     by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return if_any(g.graphs); }},
    {{"", "host_functions", Unit::count, 0, false},
     by_kernel,
     [](const GroupKey&, const Group& g, const Context&) { return if_any(g.host_functions); }},
    {{"ERRORS", "errors", Unit::count, 7},
     with_results,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.errors); }},
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.50); }},
    {{"", "latency_p95_ns", Unit::ns_as_us, 0, false},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.95); }},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return latency(g, 0.99); }},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 8},
     with_latency,
     [](const GroupKey&, const Group& g, const Context&) { return Cell(g.max_ns); }},
    {{"", "latency_total_ns", Unit::count, 0, false},
     with_latency,
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
     [](const Context& c) { return c.settings.view.result; },
     [](const GroupKey& k, const Group&, const Context&) {
         return Cell(result_name(k.layer == LAYER_RUNTIME ? Library::runtime : Library::driver, k.result));
     }},
    {{"", "result_code", Unit::count, 0, false},
     [](const Context& c) { return c.settings.view.result; },
     [](const GroupKey& k, const Group&, const Context&) { return Cell(int64_t{k.result}); }},
    {{"", "handle", Unit::hex, 0, false},
     by_kernel,
     [](const GroupKey& k, const Group&, const Context&) { return if_any(k.handle); }},
    {{"", "kernel", Unit::text, 0, false},
     by_kernel,
     [](const GroupKey& k, const Group&, const Context&) { return k.kernel.empty() ? Cell() : Cell(k.kernel); }},
    {{"KERNEL", "", Unit::text, 6, true, false},
     by_kernel,
     [](const GroupKey& k, const Group&, const Context& c) {
         const std::string name = launch_name(k);
         return Cell(c.options.full_names ? name : shorten_kernel(name, 48));
     }},
};

bool names_column(const Field& field, std::string_view name)
{
    return !name.empty() && (field.column.key == name || field.column.header == name);
}

} // namespace

void check_sort_column(const std::string& name)
{
    if (std::ranges::none_of(fields, [&](const Field& field) { return names_column(field, name); }))
        throw UsageError(fmt::format("there is no column '{}' to sort by", name));
}

void print_groups(Output& output, const LaunchGroups& groups, Context context, uint64_t wall_ns, const Frames& frames)
{
    context.captured = std::ranges::any_of(groups.groups(), [](const auto& item) { return item.second.captured != 0; });
    std::vector<const Field*> shown;
    std::vector<Column> columns;
    for (const Field& field : fields) {
        if (field.shown(context)) {
            shown.push_back(&field);
            columns.push_back(field.column);
        }
    }
    struct Line {
        double order;
        Row row;
        const GroupKey* key;
        const Group* group;
    };
    std::vector<Line> lines;
    for (const auto& [key, group] : groups.groups()) {
        Line line{static_cast<double>(group.calls() + group.captured), {}, &key, &group};
        for (const Field* field : shown) {
            line.row.push_back(field->value(key, group, context));
            if (context.settings.sort != "launches" && names_column(*field, context.settings.sort))
                line.order = sort_value(line.row.back());
        }
        lines.push_back(std::move(line));
    }
    std::ranges::stable_sort(lines, std::greater<>(), &Line::order);
    if (context.options.rows && !context.options.json && lines.size() > context.options.rows)
        lines.resize(context.options.rows);
    output.begin_table(columns, wall_ns, static_cast<uint64_t>(context.seconds * 1e9));
    for (const Line& line : lines)
        output.row(columns, line.row, frames(*line.key, *line.group));
}

} // namespace gpusnoop
