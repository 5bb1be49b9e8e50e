// SPDX-License-Identifier: Apache-2.0
#include "nvioctl_columns.hpp"

#include "call_fields.hpp"
#include "driver_devices.hpp"
#include "label.hpp"

#include <fmt/format.h>

namespace gpusnoop::nvioctl {
namespace {

using K = DriverKey;
using G = DriverGroup;
using C = Context;

template<bool Settings::*dimension>
Shown where_told(const C& c)
{
    return c.settings.*dimension ? Shown::both : Shown::no;
}

template<bool Settings::*dimension>
Shown json_where_told(const C& c)
{
    return c.settings.*dimension ? Shown::json : Shown::no;
}

Shown always(const C&)
{
    return Shown::both;
}

Shown unless_failed_only(const C& c)
{
    return c.options.failed_only ? Shown::no : Shown::both;
}

Cell hex(std::optional<uint32_t> number)
{
    return number ? Cell(uint64_t{*number}) : Cell();
}

const Field<K, G, C> fields[] = {
    {{"DEVICE", "device", Unit::text, 12},
     where_told<&Settings::node>,
     [](const K& k, const G&, const C&) { return Cell(node_name(k.node, k.minor)); }},
    {{"COMMAND", "command", Unit::text, 36},
     where_told<&Settings::command>,
     [](const K& k, const G&, const C&) { return Cell(command_text(k.kind, k.node, k.subject, k.flags)); }},
    {{"", "request", Unit::hex},
     json_where_told<&Settings::command>,
     [](const K& k, const G&, const C&) { return k.kind == ENTRY_IOCTL ? Cell(k.subject & 0xffffffff) : Cell(); }},
    {{"", "subject", Unit::hex},
     json_where_told<&Settings::command>,
     [](const K& k, const G&, const C&) { return k.flags & CALL_SUBJECT ? Cell(k.subject >> 32) : Cell(); }},
    {{"CLASS", "class", Unit::text, 28},
     where_told<&Settings::object_class>,
     [](const K& k, const G&, const C&) { return k.object_class ? Cell(class_text(k.object_class)) : Cell(); }},
    {{"", "class_number", Unit::hex},
     json_where_told<&Settings::object_class>,
     [](const K& k, const G&, const C&) { return hex(k.object_class); }},
    {{"CALLS", "calls", Unit::count, 8}, always, [](const K&, const G& g, const C&) { return Cell(g.calls); }},
    {{"CALLS/s", "calls_per_second", Unit::rate, 9},
     always,
     [](const K&, const G& g, const C& c) { return per_second(g.calls, c); }},
    {{"ERRORS", "errors", Unit::count, 7}, always, [](const K&, const G& g, const C&) { return Cell(g.errors); }},
    {{"?", "unknown", Unit::count, 5},
     unless_failed_only,
     [](const K&, const G& g, const C&) { return Cell(g.unknown); }},
    {{"PENDING", "pending", Unit::count, 7},
     unless_failed_only,
     [](const K&, const G& g, const C&) { return Cell(g.pending); }},
    {{"", "pending_max_ns", Unit::count},
     [](const C& c) { return c.options.failed_only ? Shown::no : Shown::json; },
     [](const K&, const G& g, const C&) { return g.pending ? Cell(g.pending_ns) : Cell(); }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     where_told<&Settings::command>,
     [](const K&, const G& g, const C&) { return if_any(g.bytes); }},
    {{"VIRTUAL", "virtual_bytes", Unit::bytes, 7},
     where_told<&Settings::command>,
     [](const K&, const G& g, const C&) { return if_any(g.virtual_bytes); }},
    {{"TOTAL(s)", "total_ns", Unit::seconds, 10},
     always,
     [](const K&, const G& g, const C&) { return Cell(g.total_ns); }},
    {{"p50(us)", "latency_p50_ns", Unit::ns_as_us, 9},
     always,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.50); }},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 9},
     always,
     [](const K&, const G& g, const C&) { return duration_cell(g, 0.99); }},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 9},
     always,
     [](const K&, const G& g, const C&) { return g.calls     ? Cell(g.max_ns)
                                                 : g.pending ? Cell(g.pending_ns)
                                                             : Cell(); }},
    {{"RESULT", "result", Unit::text, 24},
     where_viewed<C, &CallView::result>,
     [](const K& k, const G&, const C&) { return Cell(outcome_text(k.outcome, k.result)); }},
    {{"", "result_code", Unit::count},
     [](const C& c) { return c.settings.view.result ? Shown::json : Shown::no; },
     [](const K& k, const G&, const C&) { return result_code(k.outcome, k.result); }},
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

void check_sort(const std::string& name)
{
    check_sort_column<K, G, C>(fields, name);
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
