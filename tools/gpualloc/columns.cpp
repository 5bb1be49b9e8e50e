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

Cell bytes_of(const Amount& amount)
{
    return amount.bytes_held();
}

Cell count_of(const Amount& amount)
{
    return amount.count_held();
}

// With -x there is nothing that is held.
Shown held(const C& c)
{
    return c.options.failed_only ? Shown::no : Shown::both;
}

Shown held_in_json(const C& c)
{
    return c.options.failed_only ? Shown::no : Shown::json;
}

// Kinds have a column each where they have no row each.
Shown by_kind(const C& c)
{
    return c.options.failed_only || c.settings.holding ? Shown::no : Shown::both;
}

Shown by_kind_in_json(const C& c)
{
    return c.options.failed_only || c.settings.holding ? Shown::no : Shown::json;
}

// Known for whole processes only.
bool whole_processes(const C& c)
{
    return shows_nvml(c.settings, c.options);
}

Shown of_processes(const C& c)
{
    return whole_processes(c) ? Shown::both : Shown::no;
}

Shown of_processes_in_text(const C& c)
{
    return whole_processes(c) ? Shown::text : Shown::no;
}

Shown of_processes_in_json(const C& c)
{
    return whole_processes(c) ? Shown::json : Shown::no;
}

Shown if_no_room(const C& c)
{
    return c.no_room || c.options.failed_only ? Shown::both : Shown::json;
}

// Beyond what was seen to be allocated.
Cell rest_of_nvml(const G& group)
{
    if (!group.nvml_bytes)
        return {};
    return static_cast<int64_t>(*group.nvml_bytes) - static_cast<int64_t>(group.device().bytes_held());
}

// In the text a column that there is no source for says so in every row.
Cell or_not_available(const C& c, const Cell& cell)
{
    return c.nvml ? cell : Cell(std::string("n/a"));
}

// What was allocated before is not known: it is held, too.
bool is_least(const G& group, const C& c)
{
    return c.processes.any_from_before(group.who.images);
}

Cell held_cell(uint64_t held, const G& group, const C& c)
{
    return is_least(group, c) ? Cell(AtLeast{held}) : Cell(held);
}

// Rows of one kind show that; others the memory of the device.
Amount live(const G& group, const C& c)
{
    return c.settings.holding ? group.all() : group.device();
}

template<uint8_t holding>
constexpr Field<C, K, G> held_field(const Column& column, Shown (*shown)(const C&))
{
    return {column, shown, [](const K&, const G& g, const C&) { return bytes_of(g.held[holding]); }, extra};
}

const Field<C, K, G> fields[] = {
    device_field<K, G, C>,
    function_field<K, G, C>,
    {{"CALL", "operation", Unit::text, 5},
     [](const C& c) { return c.settings.operation ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(operation_name(k.operation))); }},
    {{"KIND", "kind", Unit::text, 11},
     [](const C& c) { return c.settings.holding ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(holding_name(k.holding))); }},
    {{"SIZE", "size_bytes", Unit::bytes, 7},
     [](const C& c) { return c.settings.size ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return k.octave ? Cell(uint64_t{1} << *k.octave) : Cell(); }},
    {level({"LIVE", "live_bytes", Unit::bytes, 7}), held,
     [](const K&, const G& g, const C& c) { return held_cell(live(g, c).bytes_held(), g, c); }},
    {level({"COUNT", "live_allocations", Unit::count, 7}), held,
     [](const K&, const G& g, const C& c) {
         return held_cell((c.settings.holding ? g.all() : g.memory()).count_held(), g, c);
     }},
    {{"", "live_is_lower_bound", Unit::count},
     held_in_json,
     [](const K&, const G& g, const C& c) { return Cell(uint64_t{is_least(g, c)}); }},
    {{"~", "", Unit::text, 1},
     [](const C& c) { return c.approximate && !c.options.failed_only ? Shown::text : Shown::no; },
     [](const K&, const G& g, const C&) { return Cell(std::string(g.approximate || g.untracked ? "~" : " ")); }},
    {{"", "approximate", Unit::count},
     held_in_json,
     [](const K&, const G& g, const C&) { return Cell(uint64_t{g.approximate || g.untracked ? 1U : 0U}); }},
    {{"PEAK", "peak_bytes", Unit::bytes, 7},
     of_processes,
     [](const K&, const G& g, const C&) { return g.peak_bytes ? Cell(*g.peak_bytes) : Cell(); }},
    held_field<HOLDING_DEVICE>({"DEVICE", "device_bytes", Unit::bytes, 7}, by_kind),
    held_field<HOLDING_POOL>({"POOL", "pool_bytes", Unit::bytes, 7}, by_kind),
    held_field<HOLDING_VMM>({"VMM", "vmm_bytes", Unit::bytes, 7}, by_kind),
    held_field<HOLDING_ARRAY>({"", "array_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_MANAGED>({"MANAGED", "managed_bytes", Unit::bytes, 7}, by_kind),
    {{"PINNED", "", Unit::bytes, 7},
     [](const C& c) { return by_kind(c) == Shown::both ? Shown::text : Shown::no; },
     [](const K&, const G& g, const C&) {
         Amount both = g.held[HOLDING_PINNED];
         both.add(0, g.held[HOLDING_REGISTERED].bytes);
         return bytes_of(both);
     },
     extra},
    held_field<HOLDING_PINNED>({"", "pinned_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_REGISTERED>({"", "registered_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_RESERVED>({"", "reserved_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_MAPPED>({"", "mapped_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_EXTERNAL>({"", "external_bytes", Unit::bytes}, by_kind_in_json),
    held_field<HOLDING_GRAPH>({"", "graph_bytes", Unit::bytes}, by_kind_in_json),
    {{"", "imported", Unit::count},
     by_kind_in_json,
     [](const K&, const G& g, const C&) { return count_of(g.held[HOLDING_IMPORTED]); }},
    {{"", "pools", Unit::count},
     by_kind_in_json,
     [](const K&, const G& g, const C&) { return count_of(g.held[HOLDING_POOL_OBJECT]); }},
    vendors_field<K, G, C>,
    {{"", "allocs", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.allocs); }},
    {{"", "frees", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.frees); }},
    {{"", "allocated_bytes", Unit::bytes},
     held_in_json,
     [](const K&, const G& g, const C&) { return Cell(g.allocated_bytes); }},
    {{"", "freed_bytes", Unit::bytes},
     held_in_json,
     [](const K&, const G& g, const C&) { return Cell(g.freed_bytes); }},
    {{"ALLOC/s", "allocs_per_second", Unit::rate, 8},
     held,
     [](const K&, const G& g, const C& c) { return per_second(g.allocs, c); }},
    {{"FREE/s", "frees_per_second", Unit::rate, 8},
     held,
     [](const K&, const G& g, const C& c) { return per_second(g.frees, c); },
     extra},
    {{"CHURN/s", "", Unit::bytes, 7},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::text; },
     [](const K&, const G& g, const C& c) {
         return Cell(static_cast<uint64_t>(static_cast<double>(g.churn_bytes()) / c.seconds));
     },
     extra},
    {{"", "churn_bytes_per_second", Unit::rate},
     held_in_json,
     [](const K&, const G& g, const C& c) { return per_second(g.churn_bytes(), c); }},
    {{"FAILED", "failures", Unit::count, 6},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.failures); }},
    {{"OOM", "out_of_memory", Unit::count, 5},
     if_no_room,
     [](const K&, const G& g, const C&) { return Cell(g.out_of_memory); }},
    {{"ASKED", "failed_bytes", Unit::bytes, 7},
     if_no_room,
     [](const K&, const G& g, const C&) { return g.last_failed ? Cell(g.failed_bytes) : Cell(); }},
    {{"", "released", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.released); }},
    {{"", "released_bytes", Unit::bytes},
     held_in_json,
     [](const K&, const G& g, const C&) { return Cell(g.released_bytes); }},
    {{"UNKNOWN", "unknown_frees", Unit::count, 7},
     [](const C& c) { return c.options.failed_only ? Shown::no
                             : c.unknown_frees     ? Shown::both
                                                   : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.unknown_frees); }},
    {{"", "untracked", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.untracked); }},
    {{"", "unsized", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.unsized); }},
    {{"", "captured", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.captured); }},
    {{"", "trims", Unit::count}, held_in_json, [](const K&, const G& g, const C&) { return Cell(g.trims); }},
    {{"NVML", "", Unit::bytes, 7},
     of_processes_in_text,
     [](const K&, const G& g, const C& c) { return or_not_available(c, g.nvml_bytes ? Cell(*g.nvml_bytes) : Cell()); }},
    {{"", "nvml_bytes", Unit::bytes},
     of_processes_in_json,
     [](const K&, const G& g, const C&) { return g.nvml_bytes ? Cell(*g.nvml_bytes) : Cell(); }},
    {{"BEFORE+CTX", "", Unit::bytes, 10},
     of_processes_in_text,
     [](const K&, const G& g, const C& c) { return or_not_available(c, rest_of_nvml(g)); }},
    {{"", "before_attach_and_context_bytes", Unit::bytes},
     of_processes_in_json,
     [](const K&, const G& g, const C&) { return rest_of_nvml(g); }},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

using L = CallLine;

const Field<C, L> fields_of_lines[] = {
    line_layer<C, L>,
    line_vendor<C, L>,
    line_stream<C, L>,
    {{"CALL", "operation", Unit::text, 5},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(operation_name(l.call.key.kind))); }},
    {{"KIND", "kind", Unit::text, 10},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(holding_name(l.call.key.memory.holding))); }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     always<C>,
     [](const L& l, const C&) { return l.call.memory.sized ? Cell(uint64_t{l.call.memory.bytes}) : Cell(); }},
    {{"ADDRESS", "address", Unit::hex, 14},
     always<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.memory.address}); }},
    {{"HELD(s)", "lifetime_ns", Unit::seconds, 11},
     always<C>,
     [](const L& l, const C&) {
         const call_key& key = l.call.key;
         const bool freed = key.kind == KIND_FREE && key.memory.holding != HOLDING_NONE;
         return freed ? if_any(l.call.memory.age_ns) : Cell();
     }},
    line_latency<C, L>,
    line_result<C, L>,
    line_result_code<C, L>,
    line_captured<C, L>,
    line_function<C, L>,
};

} // namespace

bool shows_nvml(const Settings& settings, const Options& options)
{
    const CallView& view = settings.view;
    return !options.failed_only && !settings.holding && !settings.size && !view.device && !view.function &&
           !view.stack && !view.who.thread;
}

std::span<const Field<Context, CallLine>> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(
        fields, options, sort,
        {{"line", columns_of_lines(line_fields())}, {"exit", exit_columns()}, {"leak", leak_columns()}});
}

void print_groups(Output& output, AllocationGroups& groups, Context context, uint64_t wall_ns,
                  const FramesOf<AllocationKey, AllocationGroup>& frames)
{
    // In the text a row for addresses alone would be one of zeros.
    if (!context.options.json && !context.settings.holding)
        std::erase_if(groups.groups(), [](const auto& item) { return item.second.idle(); });
    for (const auto& [key, group] : groups.groups()) {
        context.approximate |= group.approximate || group.untracked;
        context.unknown_frees |= group.unknown_frees != 0;
        context.no_room |= group.out_of_memory != 0;
    }
    print_table<K, G, C>(
        output, fields, groups.groups(), context, wall_ns, context.settings.sort,
        [&](const G& group) {
            return context.options.failed_only ? static_cast<double>(group.failures)
                                               : static_cast<double>(live(group, context).bytes);
        },
        frames);
}

void print_histograms(Output& output, AllocationGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    const bool sizes = settings.histogram_of == Measure::size;
    for (const auto& [key, group] : groups.groups()) {
        const Histogram& histogram = sizes ? group.sizes : group.duration;
        if (!histogram.total())
            continue;
        Label label;
        label.fields.emplace_back("measure", settings.measure);
        label.add_call(settings.view, key, group.who, context.processes, context.probes);
        if (settings.holding)
            label.add("kind", std::string(holding_name(key.holding)));
        if (settings.operation)
            label.add("operation", std::string(operation_name(key.operation)));
        output.histogram(label.title, sizes ? "bytes" : context.options.unit_name(), histogram, label.fields, wall_ns);
    }
}

} // namespace gpusnoop::gpualloc
