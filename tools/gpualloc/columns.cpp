// SPDX-License-Identifier: Apache-2.0
#include "tools/gpualloc/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"
#include "tools/gpualloc/lines.hpp"

namespace gpusnoop::gpualloc {
namespace {

using K = AllocationKey;
using G = AllocationGroup;
using C = Context;

using F = Field<C, K, G>;

constexpr auto held_in_json = unless_failed<C, Shown::json>;

// Shows the columns that are about one kind of memory, unless rows are grouped by kind.
template<Shown where>
Shown by_kind(const C& c)
{
    return c.settings.holding ? Shown::no : unless_failed<C, where>(c);
}

// Shows columns whose values are known only for whole processes.
Shown of_processes(const C& c)
{
    return shows_nvml(c.settings, c.options) ? Shown::both : Shown::no;
}

Shown if_out_of_memory(const C& c)
{
    return c.out_of_memory || c.options.failed_only ? Shown::both : Shown::json;
}

Cell nvml_bytes(const K&, const G& g, const C&)
{
    return cell_if(g.nvml_bytes);
}

// Memory according to NVML, minus traced allocations.
Cell rest_of_nvml(const K&, const G& g, const C&)
{
    if (!g.nvml_bytes)
        return {};
    return static_cast<int64_t>(*g.nvml_bytes) - static_cast<int64_t>(g.device().bytes_held());
}

// In text, "n/a" if NVML is not available.
template<Cell (*value)(const K&, const G&, const C&)>
Cell or_not_available(const K& k, const G& g, const C& c)
{
    return c.nvml ? value(k, g, c) : Cell(std::string("n/a"));
}

bool is_approximate(const G& g)
{
    return g.approximate || g.untracked;
}

// True if the row may hold memory that was allocated before tracing.
bool is_lower_bound(const G& group, const C& c)
{
    return c.processes.any_began_before_tracing(group.who.images);
}

Cell held_cell(uint64_t held, const G& group, const C& c)
{
    return is_lower_bound(group, c) ? Cell(AtLeast{held}) : Cell(held);
}

// If rows are grouped by kind, memory of the row's kind; otherwise, device memory.
Amount live(const G& group, const C& c)
{
    return c.settings.holding ? group.all() : group.device();
}

template<uint8_t holding>
constexpr auto bytes_of = [](const K&, const G& g, const C&) { return Cell(g.held[holding].bytes_held()); };

template<uint8_t holding>
constexpr auto objects_of = [](const K&, const G& g, const C&) { return Cell(g.held[holding].count_held()); };

constexpr F fields[] = {
    {{"DEVICE", "device", Unit::count, 6},
     device_field<K, G, C>.shown,
     device_field<K, G, C>.value,
     "Device that has the memory, as a CUDA device number of the process (CUDA_VISIBLE_DEVICES applies); with `--by "
     "device`. It is taken from the call's location argument or, if there is none, from the thread's context. That "
     "context is unknown until the traced thread makes a context current, or changes its device."},
    function_field<K, G, C>,
    {{"CALL", "operation", Unit::text, 5},
     where_set<C, &Settings::operation>,
     [](const K& k, const G&, const C&) { return Cell(std::string(operation_name(k.operation))); },
     "`alloc`, `free` or `trim`; with `-x`."},
    {{"KIND", "kind", Unit::text, 11},
     where_set<C, &Settings::holding>,
     [](const K& k, const G&, const C&) { return Cell(std::string(holding_name(k.holding))); },
     "Kind of memory, see `DESCRIPTION`; with `--by kind`."},
    {{"SIZE", "size_bytes", Unit::bytes, 7},
     where_set<C, &Settings::size>,
     [](const K& k, const G&, const C&) { return k.octave ? Cell(uint64_t{1} << *k.octave) : Cell(); },
     "Allocations of at least this size and less than twice this size; with `--by size`."},
    {level({"LIVE", "live_bytes", Unit::bytes, 7}), unless_failed<C>,
     [](const K&, const G& g, const C& c) { return held_cell(live(g, c).bytes_held(), g, c); },
     "Bytes of device memory (device, array, pool, vmm) held at the end of the interval; if rows are grouped by kind, "
     "bytes of that kind. This and the following fields down to CHURN/s are not shown with `-x`. `>=` here and in "
     "COUNT marks a row with a process that started before tracing and may hold memory that it allocated earlier."},
    {level({"COUNT", "live_allocations", Unit::count, 7}), unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         return held_cell((c.settings.holding ? g.all() : g.memory()).count_held(), g, c);
     },
     "Number of allocations held, including host memory; if rows are grouped by kind, of that kind only."},
    {{"", "live_is_lower_bound", Unit::count},
     held_in_json,
     [](const K&, const G& g, const C& c) { return Cell(uint64_t{is_lower_bound(g, c)}); },
     "1 if LIVE and COUNT are marked with `>=`, else 0."},
    F{{"~", "approximate", Unit::count, 1},
      unless_failed_if<C, &C::approximate>,
      [](const K&, const G& g, const C&) { return Cell(uint64_t{is_approximate(g)}); },
      "Marks rows whose values may be too low or too high (1 in JSON, else 0): some allocations did not fit in the "
      "kernel's table, or a context ended and it is not known which allocations it held. The column appears only if "
      "there are such rows."}
        .in_text([](const K&, const G& g, const C&) { return Cell(std::string(is_approximate(g) ? "~" : " ")); }),
    {{"PEAK", "peak_bytes", Unit::bytes, 7},
     of_processes,
     [](const K&, const G& g, const C&) { return cell_if(g.peak_bytes); },
     "The largest LIVE at any moment since tracing began. Known only for rows in which just one process has device "
     "memory, because the peaks of several processes do not add up. Not shown for rows that are parts of a process "
     "(kind, size, stack, device, api, thread)."},
    {{"DEVICE", "device_bytes", Unit::bytes, 7},
     by_kind<Shown::both>,
     bytes_of<HOLDING_DEVICE>,
     "Bytes held, by kind of memory. These and the following fields down to `pools` are not shown with `--by kind`.",
     extra},
    {{"POOL", "pool_bytes", Unit::bytes, 7}, by_kind<Shown::both>, bytes_of<HOLDING_POOL>, "", extra},
    {{"VMM", "vmm_bytes", Unit::bytes, 7}, by_kind<Shown::both>, bytes_of<HOLDING_VMM>, "", extra},
    {{"", "array_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_ARRAY>},
    {{"MANAGED", "managed_bytes", Unit::bytes, 7}, by_kind<Shown::both>, bytes_of<HOLDING_MANAGED>, "", extra},
    {{"PINNED", "", Unit::bytes, 7},
     by_kind<Shown::text>,
     [](const K&, const G& g, const C&) {
         Amount both = g.held[HOLDING_PINNED];
         both.add(0, g.held[HOLDING_REGISTERED].bytes);
         return Cell(both.bytes_held());
     },
     "Bytes of pinned and registered host memory. JSON has them separately (pinned_bytes, registered_bytes).",
     extra},
    {{"", "pinned_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_PINNED>},
    {{"", "registered_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_REGISTERED>},
    {{"", "reserved_bytes", Unit::bytes},
     by_kind<Shown::json>,
     bytes_of<HOLDING_RESERVED>,
     "Bytes held, by kind, for the kinds that LIVE and the other totals never include."},
    {{"", "mapped_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_MAPPED>},
    {{"", "external_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_EXTERNAL>},
    {{"", "graph_bytes", Unit::bytes}, by_kind<Shown::json>, bytes_of<HOLDING_GRAPH>},
    {{"", "imported", Unit::count},
     by_kind<Shown::json>,
     objects_of<HOLDING_IMPORTED>,
     "Number of imports held, and number of pools held."},
    {{"", "pools", Unit::count}, by_kind<Shown::json>, objects_of<HOLDING_POOL_OBJECT>},
    vendors_field<K, G, C>,
    {{"", "allocs", Unit::count},
     held_in_json,
     count_of<&G::allocs>,
     "Allocations that succeeded in the interval. Without `--by kind`, only allocations of memory count, not "
     "reservations, mappings or imports."},
    {{"", "frees", Unit::count},
     held_in_json,
     count_of<&G::frees>,
     "Frees, by any process, of memory that was allocated in this row."},
    {{"", "allocated_bytes", Unit::bytes},
     held_in_json,
     count_of<&G::allocated_bytes>,
     "Bytes allocated and bytes freed in the interval."},
    {{"", "freed_bytes", Unit::bytes}, held_in_json, count_of<&G::freed_bytes>},
    {{"ALLOC/s", "allocs_per_second", Unit::rate, 8},
     unless_failed<C>,
     rate_of<&G::allocs>,
     "Allocations and frees per second of the interval."},
    {{"FREE/s", "frees_per_second", Unit::rate, 8}, unless_failed<C>, rate_of<&G::frees>, "", extra},
    F{{"CHURN/s", "churn_bytes_per_second", Unit::rate, 7},
      unless_failed<C>,
      [](const K&, const G& g, const C& c) { return per_second(g.churn_bytes(), c); },
      "Sum of the bytes allocated and the bytes freed, per second.",
      extra}
        .in_text(
            [](const K&, const G& g, const C& c) {
                return Cell(static_cast<uint64_t>(static_cast<double>(g.churn_bytes()) / c.seconds));
            },
            Unit::bytes),
    {{"FAILED", "failures", Unit::count, 6},
     always<C>,
     count_of<&G::failures>,
     "Allocations, frees and trims that returned an error (ERRORS in other tools)."},
    {{"OOM", "out_of_memory", Unit::count, 5},
     if_out_of_memory,
     count_of<&G::out_of_memory>,
     "Allocations that failed with CUDA_ERROR_OUT_OF_MEMORY (2)."},
    {{"ASKED", "failed_bytes", Unit::bytes, 7},
     if_out_of_memory,
     [](const K&, const G& g, const C&) { return g.last_failed ? Cell(g.failed_bytes) : Cell(); },
     "Bytes requested by the last allocation that ran out of memory; with `-x`, by the last one that failed."},
    {{"", "released", Unit::count},
     held_in_json,
     count_of<&G::released>,
     "Memory released in the interval without a free: its context or process ended, or its address was allocated "
     "again; see `DESCRIPTION`."},
    {{"", "released_bytes", Unit::bytes}, held_in_json, count_of<&G::released_bytes>},
    {{"UNKNOWN", "unknown_frees", Unit::count, 7},
     unless_failed_if<C, &C::unknown_frees>,
     count_of<&G::unknown_frees>,
     "Frees of memory whose allocation was not traced. The column appears only if there are such frees."},
    {{"", "untracked", Unit::count},
     held_in_json,
     count_of<&G::untracked>,
     "Allocations that did not fit in the kernel's table (`--live-entries`)."},
    {{"", "unsized", Unit::count},
     held_in_json,
     count_of<&G::unsized>,
     "Allocations of unknown size: arrays of block-compressed and planar formats, arrays of external memory, imports, "
     "and calls whose arguments could not be read. They count as 0 bytes."},
    {{"", "captured", Unit::count}, held_in_json, count_of<&G::captured>, "Calls that were recorded into a graph."},
    {{"", "trims", Unit::count},
     held_in_json,
     count_of<&G::trims>,
     "Calls that trim a pool, or the graph memory of a device."},
    F{{"NVML", "nvml_bytes", Unit::bytes, 7},
      of_processes,
      nvml_bytes,
      "Memory that the process holds on all devices, according to NVML, or to KFD and amdgpu for AMD devices; read "
      "once per report."}
        .in_text(or_not_available<nvml_bytes>, Unit::bytes),
    F{{"BEFORE+CTX", "before_attach_and_context_bytes", Unit::bytes, 10},
      of_processes,
      rest_of_nvml,
      "NVML minus LIVE: memory allocated before tracing, and memory of contexts and modules. Negative if memory was "
      "freed between the two readings."}
        .in_text(or_not_available<rest_of_nvml>, Unit::bytes),
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

constexpr LineField fields_of_lines[] = {
    line_layer,
    line_vendor,
    line_stream,
    {{"CALL", "operation", Unit::text, 5},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(std::string(operation_name(l.call.key.kind))); },
     "`alloc`, `free` or `trim`. A call has several lines if it unmaps several mappings, or if it also frees memory "
     "because it unmaps the last mapping."},
    {{"KIND", "kind", Unit::text, 10},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(std::string(holding_name(l.call.key.memory.holding))); },
     "Kind of the memory."},
    {{"BYTES", "bytes", Unit::bytes, 7},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return l.call.memory.sized ? Cell(uint64_t{l.call.memory.bytes}) : Cell();
     },
     "Size of the memory."},
    {{"ADDRESS", "address", Unit::hex, 14},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.memory.address}); },
     "Address or handle of the memory."},
    {{"HELD(s)", "lifetime_ns", Unit::seconds, 11},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         const call_key& key = l.call.key;
         const bool freed = key.kind == KIND_FREE && key.memory.holding != HOLDING_NONE;
         return freed ? if_any(l.call.memory.age_ns) : Cell();
     },
     "For a free: time since the allocation."},
    line_latency,
    line_result,
    line_result_code,
    line_captured,
    line_function,
};

void print_histograms(Output& output, AllocationGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    const bool sizes = settings.histogram_of == Measure::size;
    print_call_histograms(output, groups.groups(), sizes ? &G::sizes : &G::duration,
                          sizes ? "bytes" : context.options.unit_name(), context, wall_ns,
                          [&](Label& label, const K& key, const G&) {
                              if (settings.holding)
                                  label.add("kind", std::string(holding_name(key.holding)));
                              if (settings.operation)
                                  label.add("operation", std::string(operation_name(key.operation)));
                          });
}

} // namespace

bool shows_nvml(const Settings& settings, const Options& options)
{
    const CallView& view = settings.view;
    return !options.failed_only && !settings.holding && !settings.size && !view.device && !view.function &&
           !view.stack && !view.who.thread;
}

std::span<const LineField> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(
        fields, options, sort,
        {{"line", columns_of_lines(line_fields())}, {"exit", exit_columns()}, {"leak", leak_columns()}});
}

void print_groups(Output& output, AllocationGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    // In text, omit rows that hold only reserved addresses, because they would show only zeros.
    if (!context.options.json && !context.settings.holding)
        std::erase_if(groups.groups(), [](const auto& item) { return item.second.idle(); });
    for (const auto& [key, group] : groups.groups()) {
        context.approximate |= group.approximate || group.untracked;
        context.unknown_frees |= group.unknown_frees != 0;
        context.out_of_memory |= group.out_of_memory != 0;
    }
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, context.settings.sort, [&](const G& group) {
        return context.options.failed_only ? static_cast<double>(group.failures)
                                           : static_cast<double>(live(group, context).bytes);
    });
}

} // namespace gpusnoop::gpualloc
