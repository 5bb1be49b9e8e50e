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

constexpr std::string_view about_outcome =
    "Result of the call, by name and number: NV_STATUS, or a negative errno. Tables show it only with `-x`.";

Cell request(uint8_t kind, uint64_t subject)
{
    return kind == ENTRY_IOCTL ? Cell(subject & 0xffffffff) : Cell();
}

Cell inner_subject(uint8_t flags, uint64_t subject)
{
    return flags & CALL_SUBJECT ? Cell(subject >> 32) : Cell();
}

constexpr auto by_command = where_set<C, &Settings::command>;
constexpr auto by_command_in_json = where_set<C, &Settings::command, Shown::json>;

constexpr Field<C, K, G> fields[] = {
    {{"DEVICE", "device", Unit::text, 10},
     where_set<C, &Settings::node>,
     [](const K& k, const G&, const C&) { return Cell(node_name(k.node, k.minor)); },
     "The device node, as named below /dev."},
    {{"", "request", Unit::hex},
     by_command_in_json,
     [](const K& k, const G&, const C&) { return request(k.kind, k.subject); },
     "The numbers behind the name of a command: the ioctl's request, and the control, class or function that it "
     "carries."},
    {{"", "subject", Unit::hex},
     by_command_in_json,
     [](const K& k, const G&, const C&) { return inner_subject(k.flags, k.subject); }},
    {{"CLASS", "class", Unit::text, 28},
     where_set<C, &Settings::object_class>,
     [](const K& k, const G&, const C&) { return k.object_class ? Cell(class_text(k.object_class)) : Cell(); },
     "Class of the object that a control is sent to, or that is created; `-` for other calls."},
    {{"", "class_number", Unit::hex},
     where_set<C, &Settings::object_class, Shown::json>,
     [](const K& k, const G&, const C&) { return cell_if(k.object_class); }},
    {{"CALLS", "calls", Unit::count, 6},
     always<C>,
     count_of<&G::calls>,
     "Number of calls that returned in the interval (CALLS), and the same per second (CALLS/s)."},
    {{"CALLS/s", "calls_per_second", Unit::rate, 9}, always<C>, rate_of<&G::calls>, "", extra},
    {{"ERRORS", "errors", Unit::count, 6},
     always<C>,
     count_of<&G::errors>,
     "Calls that failed: the driver's status is an error, or the system call returned one."},
    {{"?", "unknown", Unit::count, 5},
     unless_failed<C>,
     count_of<&G::unknown>,
     "Calls whose status is unknown.",
     extra},
    {level({"PENDING", "pending", Unit::count, 7}), unless_failed<C>, count_of<&G::pending>,
     "Number of calls that had not returned by the end of the interval. JSON also has the time since the first of them "
     "began."},
    {{"", "pending_max_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C&) { return g.pending ? Cell(g.pending_ns) : Cell(); }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     by_command,
     [](const K&, const G& g, const C&) { return if_any(g.bytes); },
     "Memory that the calls request, map or migrate, including calls that fail. Shown only if rows are grouped by "
     "command.",
     extra},
    {{"VIRTUAL", "virtual_bytes", Unit::bytes, 7},
     by_command,
     [](const K&, const G& g, const C&) { return if_any(g.virtual_bytes); },
     "Like BYTES, for calls that concern address space instead of memory.",
     extra},
    {{"TOTAL(s)", "total_ns", Unit::seconds, 8},
     always<C>,
     count_of<&G::total_ns>,
     "Sum of the durations of the calls in CALLS; in JSON, in nanoseconds."},
    {{"p50(us)", "latency_p50_ns", Unit::ns_as_us, 9},
     always<C>,
     duration_percentile<50>,
     "Median and 99th percentile of the durations, to within about 6%.",
     extra},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 9}, always<C>, duration_percentile<99>, "", extra},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return g.calls     ? Cell(g.max_ns)
                                                 : g.pending ? Cell(g.pending_ns)
                                                             : Cell(); },
     "Duration of the longest call in CALLS. If no call has returned: time since the longest pending call began."},
    {{"COMMAND", "command", Unit::text, 26},
     by_command,
     [](const K& k, const G&, const C&) { return Cell(command_text(k.kind, k.node, k.subject, k.flags)); },
     "Name of the ioctl, see `DESCRIPTION`; or `open`, `close` or `mmap`."},
    {{"RESULT", "result", Unit::text, 24},
     where_viewed<C, &CallView::result>,
     [](const K& k, const G&, const C&) { return Cell(outcome_text(k.outcome, k.result)); },
     about_outcome},
    {{"", "result_code", Unit::count},
     result_in_json<C>,
     [](const K& k, const G&, const C&) { return result_code(k.outcome, k.result); }},
};

Cell size_of(const CallLine& line)
{
    return line.call.memory.sized ? Cell(uint64_t{line.call.memory.bytes}) : Cell();
}

constexpr LineField fields_of_lines[] = {
    {{"DEVICE", "device", Unit::text, 12},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return Cell(node_name(l.call.key.driver.node, l.call.key.driver.minor));
     },
     "This and the following fields down to virtual_bytes are the same as in tables."},
    {{"COMMAND", "command", Unit::text, 36},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(command_text(l.call.key)); }},
    {{"", "request", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return request(l.call.key.kind, l.call.key.subject); }},
    {{"", "subject", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return inner_subject(l.call.key.flags, l.call.key.subject); }},
    {{"", "class", Unit::text},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) {
         const auto number = object_class(l.call.key);
         return number ? Cell(class_text(number)) : Cell();
     }},
    {{"BYTES", "bytes", Unit::bytes, 7},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return l.call.key.flags & CALL_VIRTUAL ? Cell() : size_of(l); }},
    {{"", "virtual_bytes", Unit::bytes},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return l.call.key.flags & CALL_VIRTUAL ? size_of(l) : Cell(); }},
    line_latency,
    {{"RESULT", "result", Unit::text, 8},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return Cell(outcome_text(l.call.key.driver.outcome, l.call.key.result));
     },
     about_outcome},
    {{"", "result_code", Unit::count},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return result_code(l.call.key.driver.outcome, l.call.key.result); }},
};

void print_histograms(Output& output, const DriverGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    print_call_histograms(output, groups.groups(), &G::duration, context.options.unit_name(), context, wall_ns,
                          [&](Label& label, const K& key, const G&) {
                              if (settings.node)
                                  label.add("device", node_name(key.node, key.minor));
                              if (settings.command)
                                  label.add("command", command_text(key.kind, key.node, key.subject, key.flags));
                              if (settings.object_class && key.object_class)
                                  label.add("class", class_text(key.object_class));
                          });
}

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

std::span<const LineField> line_fields()
{
    return fields_of_lines;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort,
                                    {{"line", columns_of_lines(line_fields())}, {"xid", xid_columns()}});
}

void print_groups(Output& output, const DriverGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    // Pending calls have no total yet and would be sorted last, although other calls may wait for them.
    const std::string& sort = context.settings.sort;
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, sort == "total_ns" ? "" : sort,
                         [](const G& group) { return static_cast<double>(group.total_ns + group.pending_ns); });
}

} // namespace gpusnoop::nvioctl
