// SPDX-License-Identifier: Apache-2.0
#include "tools/cudamemcpy/columns.hpp"

#include "rows/call_fields.hpp"
#include "rows/label.hpp"

#include <algorithm>

namespace gpusnoop::cudamemcpy {
namespace {

std::string form_in_text(bool asynchronous)
{
    return asynchronous ? "submit" : "sync";
}

std::string form_in_json(bool asynchronous)
{
    return asynchronous ? "async" : "sync";
}

Shown made(const Context& c)
{
    return c.options.failed_only ? Shown::no : Shown::both;
}

Shown made_in_json(const Context& c)
{
    return c.options.failed_only ? Shown::no : Shown::json;
}

using K = CopyKey;
using G = CopyGroup;
using C = Context;

const Field<C, K, G> fields[] = {
    sampled_field<K, G, C>,
    sampled_error_field<K, G, C>,
    stream_field<K, G, C>,
    device_field<K, G, C>,
    layer_field<K, G, C>,
    vendor_field<K, G, C>,
    function_field<K, G, C>,
    {{"KIND", "kind", Unit::text, 8},
     [](const C& c) { return c.settings.direction ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(direction_name(k.direction))); }},
    {{"FORM", "", Unit::text, 6},
     [](const C& c) { return c.settings.form ? Shown::text : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(form_in_text(k.asynchronous)); }},
    {{"", "form", Unit::text},
     [](const C& c) { return c.settings.form ? Shown::json : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(form_in_json(k.asynchronous)); }},
    {{"FROM", "source", Unit::text, 8},
     [](const C& c) { return c.settings.memory ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(memory_name(k.source))); }},
    {{"TO", "destination", Unit::text, 8},
     [](const C& c) { return c.settings.memory ? Shown::both : Shown::no; },
     [](const K& k, const G&, const C&) { return Cell(std::string(memory_name(k.destination))); }},
    {of_calls({"COPIES", "copies", Unit::count, 9}), made,
     [](const K&, const G& g, const C&) { return Cell(g.copies); }},
    {of_calls({"COPY/s", "copies_per_second", Unit::rate, 9}), made,
     [](const K&, const G& g, const C& c) { return per_second(g.copies, c); }},
    {of_calls({"", "calls", Unit::count}), made_in_json, [](const K&, const G& g, const C&) { return Cell(g.calls); }},
    {of_calls({"CAPTURED", "captured", Unit::count, 8}),
     [](const C& c) { return c.options.failed_only ? Shown::no
                             : c.captured          ? Shown::both
                                                   : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.captured); }},
    errors_field<K, G, C>,
    {of_calls({"BYTES", "bytes", Unit::bytes, 7}), made, [](const K&, const G& g, const C&) { return Cell(g.bytes); }},
    {{"ASKED", "failed_bytes", Unit::bytes, 7},
     [](const C& c) { return c.options.failed_only ? Shown::both
                             : c.results()         ? Shown::json
                                                   : Shown::no; },
     [](const K&, const G& g, const C&) { return Cell(g.failed_bytes); }},
    {of_calls({"BYTES/s", "", Unit::bytes, 8}),
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::text; },
     [](const K&, const G& g, const C& c) {
         return Cell(static_cast<uint64_t>(static_cast<double>(g.bytes) / c.seconds));
     }},
    {of_calls({"", "bytes_per_second", Unit::rate}), made_in_json,
     [](const K&, const G& g, const C& c) { return per_second(g.bytes, c); }},
    {{"AVERAGE", "average_bytes", Unit::bytes, 7},
     made,
     [](const K&, const G& g, const C&) { return g.sized() ? Cell(g.bytes / g.sized()) : Cell(); }},
    {of_calls({"UNSIZED", "unsized", Unit::count, 7}),
     [](const C& c) { return c.options.failed_only ? Shown::no
                             : c.unsized           ? Shown::both
                                                   : Shown::json; },
     [](const K&, const G& g, const C&) { return Cell(g.unsized); }},
    {{"SYNC%", "", Unit::percent, 6},
     [](const C& c) { return c.options.failed_only || c.settings.form ? Shown::no : Shown::text; },
     [](const K&, const G& g, const C&) { return share(g.synchronous, g.copies); }},
    {of_calls({"", "synchronous", Unit::count}), made_in_json,
     [](const K&, const G& g, const C&) { return Cell(g.synchronous); }},
    {{"<64K%", "", Unit::percent, 6},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::text; },
     [](const K&, const G& g, const C&) { return share(g.small, g.sized()); }},
    {of_calls({"", "small", Unit::count}), made_in_json, [](const K&, const G& g, const C&) { return Cell(g.small); }},
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); }},
    {{"", "latency_p95_ns", Unit::ns_as_us},
     latency_in_json<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.95); }},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8},
     with_latency<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); }},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 8},
     with_latency<C>,
     [](const K&, const G& g, const C&) { return Cell(g.max_ns); }},
    {{"", "latency_total_ns", Unit::count},
     latency_in_json<C>,
     [](const K&, const G& g, const C&) { return Cell(g.total_ns); }},
    result_field<K, G, C>,
    result_code_field<K, G, C>,
};

Label label_of(const K& key, const G& group, const C& context)
{
    const Settings& settings = context.settings;
    Label label;
    label.fields.emplace_back("measure", settings.measure);
    label.add_call(settings.view, key, group.who, context.processes, context.probes);
    if (settings.direction)
        label.add("kind", std::string(direction_name(key.direction)));
    if (settings.form) {
        label.add("form", form_in_text(key.asynchronous));
        label.fields.back().second = form_in_json(key.asynchronous);
    }
    if (settings.memory) {
        label.add("source", std::string(memory_name(key.source)));
        label.add("destination", std::string(memory_name(key.destination)));
    }
    return label;
}

bool has_source(const CallLine& line)
{
    const uint8_t direction = line.call.key.copy.direction;
    return direction != DIRECTION_SET && direction != DIRECTION_PREFETCH;
}

Cell memory_cell(int memory)
{
    return std::string(memory_name(static_cast<uint8_t>(memory)));
}

using L = CallLine;

const Field<C, L> fields_of_lines[] = {
    line_layer<C, L>,
    line_vendor<C, L>,
    line_stream<C, L>,
    {{"KIND", "kind", Unit::text, 8},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(direction_name(l.call.key.copy.direction))); }},
    {{"FORM", "form", Unit::text, 5},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(l.call.key.flags & CALL_ASYNCHRONOUS ? "async" : "sync")); }},
    {{"SIZE", "bytes", Unit::bytes, 7},
     always<C>,
     [](const L& l, const C&) { return l.call.copy.sized ? Cell(uint64_t{l.call.copy.bytes}) : Cell(); }},
    {{"FROM", "source", Unit::text, 8},
     always<C>,
     [](const L& l, const C&) { return has_source(l) ? memory_cell(l.call.key.copy.memory >> 4) : Cell(); }},
    {{"TO", "destination", Unit::text, 8},
     always<C>,
     [](const L& l, const C&) { return memory_cell(l.call.key.copy.memory & 15); }},
    {{"", "source_address", Unit::hex},
     json_only<C>,
     [](const L& l, const C&) { return has_source(l) ? Cell(uint64_t{l.call.copy.source}) : Cell(); }},
    {{"", "destination_address", Unit::hex},
     json_only<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.copy.destination}); }},
    line_latency<C, L>,
    line_result<C, L>,
    line_result_code<C, L>,
    line_captured<C, L>,
    {{"", "copies", Unit::count},
     json_only<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.copy.copies}); }},
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

void print_groups(Output& output, const CopyGroups& groups, Context context, uint64_t wall_ns,
                  const FramesOf<CopyKey, CopyGroup>& frames)
{
    for (const auto& [key, group] : groups.groups()) {
        context.captured |= group.captured != 0;
        context.unsized |= group.unsized != 0;
    }
    print_table<K, G, C>(
        output, fields, groups.groups(), context, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.bytes + group.failed_bytes); }, frames);
}

void print_histograms(Output& output, const CopyGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Measure measure = context.settings.histogram_of;
    const std::string_view unit = measure == Measure::size   ? "bytes"
                                  : measure == Measure::rate ? "MB/s"
                                                             : context.options.unit_name();
    for (const auto& [key, group] : groups.groups()) {
        const Histogram& histogram = measure == Measure::size ? group.sizes : group.duration;
        if (!histogram.total())
            continue;
        const Label label = label_of(key, group, context);
        output.histogram(label.title, unit, histogram, label.fields, wall_ns);
    }
}

} // namespace gpusnoop::cudamemcpy
