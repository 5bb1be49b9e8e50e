// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/columns.hpp"

#include "gpu/driver_names.hpp"
#include "gpu/gpu_files.hpp"
#include "rows/call_fields.hpp"
#include "rows/label.hpp"
#include "tools/nvioctl/xid_line.hpp"

#include <fmt/format.h>

namespace gpusnoop::nvioctl {
namespace {

using K = DriverKey;
using G = DriverGroup;
using C = Context;

template<bool Settings::*dimension>
Shown where_chosen(const C& c)
{
    return c.settings.*dimension ? Shown::both : Shown::no;
}

template<bool Settings::*dimension>
Shown json_where_chosen(const C& c)
{
    return c.settings.*dimension ? Shown::json : Shown::no;
}

Shown unless_failed_only(const C& c)
{
    return c.options.failed_only ? Shown::no : Shown::both;
}

Cell hex(std::optional<uint32_t> number)
{
    return number ? Cell(uint64_t{*number}) : Cell();
}

const Field<C, K, G> fields[] = {
    {{"DEVICE", "device", Unit::text, 10},
     where_chosen<&Settings::node>,
     [](const K& k, const G&, const C&) { return Cell(node_name(k.node, k.minor)); }},
    {{"", "request", Unit::hex},
     json_where_chosen<&Settings::command>,
     [](const K& k, const G&, const C&) { return k.kind == ENTRY_IOCTL ? Cell(k.subject & 0xffffffff) : Cell(); }},
    {{"", "subject", Unit::hex},
     json_where_chosen<&Settings::command>,
     [](const K& k, const G&, const C&) { return k.flags & CALL_SUBJECT ? Cell(k.subject >> 32) : Cell(); }},
    {{"CLASS", "class", Unit::text, 28},
     where_chosen<&Settings::object_class>,
     [](const K& k, const G&, const C&) { return k.object_class ? Cell(class_text(k.object_class)) : Cell(); }},
    {{"", "class_number", Unit::hex},
     json_where_chosen<&Settings::object_class>,
     [](const K& k, const G&, const C&) { return hex(k.object_class); }},
    {{"CALLS", "calls", Unit::count, 6}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.calls); }},
    {{"CALLS/s", "calls_per_second", Unit::rate, 9},
     always<C>,
     [](const K&, const G& g, const C& c) { return per_second(g.calls, c); },
     extra},
    {{"ERRORS", "errors", Unit::count, 6}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.errors); }},
    {{"?", "unknown", Unit::count, 5},
     unless_failed_only,
     [](const K&, const G& g, const C&) { return Cell(g.unknown); },
     extra},
    {level({"PENDING", "pending", Unit::count, 7}), unless_failed_only,
     [](const K&, const G& g, const C&) { return Cell(g.pending); }},
    {{"", "pending_max_ns", Unit::count},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::json; },
     [](const K&, const G& g, const C&) { return g.pending ? Cell(g.pending_ns) : Cell(); }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     where_chosen<&Settings::command>,
     [](const K&, const G& g, const C&) { return if_any(g.bytes); },
     extra},
    {{"VIRTUAL", "virtual_bytes", Unit::bytes, 7},
     where_chosen<&Settings::command>,
     [](const K&, const G& g, const C&) { return if_any(g.virtual_bytes); },
     extra},
    {{"TOTAL(s)", "total_ns", Unit::seconds, 8},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.total_ns); }},
    {{"p50(us)", "latency_p50_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); },
     extra},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); },
     extra},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return g.calls     ? Cell(g.max_ns)
                                                 : g.pending ? Cell(g.pending_ns)
                                                             : Cell(); }},
    {{"COMMAND", "command", Unit::text, 26},
     where_chosen<&Settings::command>,
     [](const K& k, const G&, const C&) { return Cell(command_text(k.kind, k.node, k.subject, k.flags)); }},
    {{"RESULT", "result", Unit::text, 24},
     where_viewed<C, &CallView::result>,
     [](const K& k, const G&, const C&) { return Cell(outcome_text(k.outcome, k.result)); }},
    {{"", "result_code", Unit::count},
     [](const C& c) { return c.settings.view.result ? Shown::json : Shown::no; },
     [](const K& k, const G&, const C&) { return result_code(k.outcome, k.result); }},
};

Cell size_of(const CallLine& line)
{
    return line.call.memory.sized ? Cell(uint64_t{line.call.memory.bytes}) : Cell();
}

using L = CallLine;

const Field<C, L> fields_of_lines[] = {
    {{"DEVICE", "device", Unit::text, 12},
     always<C>,
     [](const L& l, const C&) { return Cell(node_name(l.call.key.driver.node, l.call.key.driver.minor)); }},
    {{"COMMAND", "command", Unit::text, 36},
     always<C>,
     [](const L& l, const C&) { return Cell(command_text(l.call.key)); }},
    {{"", "request", Unit::hex},
     json_only<C>,
     [](const L& l, const C&) {
         return l.call.key.kind == ENTRY_IOCTL ? Cell(l.call.key.subject & 0xffffffff) : Cell();
     }},
    {{"", "subject", Unit::hex},
     json_only<C>,
     [](const L& l, const C&) { return l.call.key.flags & CALL_SUBJECT ? Cell(l.call.key.subject >> 32) : Cell(); }},
    {{"", "class", Unit::text},
     json_only<C>,
     [](const L& l, const C&) {
         const auto number = object_class(l.call.key);
         return number ? Cell(class_text(number)) : Cell();
     }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     always<C>,
     [](const L& l, const C&) { return l.call.key.flags & CALL_VIRTUAL ? Cell() : size_of(l); }},
    {{"", "virtual_bytes", Unit::bytes},
     json_only<C>,
     [](const L& l, const C&) { return l.call.key.flags & CALL_VIRTUAL ? size_of(l) : Cell(); }},
    line_latency<C, L>,
    {{"RESULT", "result", Unit::text, 8},
     always<C>,
     [](const L& l, const C&) { return Cell(outcome_text(l.call.key.driver.outcome, l.call.key.result)); }},
    {{"", "result_code", Unit::count},
     json_only<C>,
     [](const L& l, const C&) { return result_code(l.call.key.driver.outcome, l.call.key.result); }},
};

} // namespace

Cell result_code(uint8_t outcome, int32_t result)
{
    switch (outcome) {
    case OUTCOME_UNKNOWN:
        return {};
    case OUTCOME_STATUS:
        return uint64_t{static_cast<uint32_t>(result)};
    default:
        return int64_t{result};
    }
}

std::span<const Field<Context, CallLine>> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort,
                                    {{"line", columns_of_lines(line_fields())}, {"xid", xid_columns()}});
}

void print_groups(Output& output, const DriverGroups& groups, const Context& context, uint64_t wall_ns,
                  const FramesOf<DriverKey, DriverGroup>& frames)
{
    // What goes on has no total yet. It would come last, and may be what the others wait for.
    const std::string& sort = context.settings.sort;
    print_table<K, G, C>(
        output, fields, groups.groups(), context, wall_ns, sort == "total_ns" ? "" : sort,
        [](const G& group) { return static_cast<double>(group.total_ns + group.pending_ns); }, frames);
}

void print_histograms(Output& output, const DriverGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    for (const auto& [key, group] : groups.groups()) {
        if (!group.duration.total())
            continue;
        Label label;
        label.fields.emplace_back("measure", settings.measure);
        label.add_call(settings.view, key, group.who, context.processes, {});
        if (settings.node)
            label.add("device", node_name(key.node, key.minor));
        if (settings.command)
            label.add("command", command_text(key.kind, key.node, key.subject, key.flags));
        if (settings.object_class && key.object_class)
            label.add("class", class_text(key.object_class));
        output.histogram(label.title, context.options.unit_name(), group.duration, label.fields, wall_ns);
    }
}

} // namespace gpusnoop::nvioctl
