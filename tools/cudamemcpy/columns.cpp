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

using K = CopyKey;
using G = CopyGroup;
using C = Context;
using F = Field<C, K, G>;

constexpr auto made_in_json = unless_failed<C, Shown::json>;

Shown for_failed_bytes(const C& c)
{
    return c.options.failed_only ? Shown::both : c.results() ? Shown::json : Shown::no;
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
        {{"KIND", "kind", Unit::text, 8},
         where_set<C, &Settings::direction>,
         [](const K& k, const G&, const C&) { return Cell(std::string(direction_name(k.direction))); },
         "Kind of copy, see `DESCRIPTION`; shown if rows are grouped by it."},
        F{{"FORM", "form", Unit::text, 6},
          where_set<C, &Settings::form>,
          [](const K& k, const G&, const C&) { return Cell(form_in_json(k.asynchronous)); },
          "Form of the called function: `sync`, or `submit` for asynchronous ones (in JSON `async`); with `-l` or "
          "`--by form`."}
            .in_text([](const K& k, const G&, const C&) { return Cell(form_in_text(k.asynchronous)); }),
        {{"FROM", "source", Unit::text, 8},
         where_set<C, &Settings::memory>,
         [](const K& k, const G&, const C&) { return Cell(std::string(memory_name(k.source))); },
         "Kind of memory of the source (FROM) and of the destination (TO), see `DESCRIPTION`; with `--by memory`."},
        {{"TO", "destination", Unit::text, 8},
         where_set<C, &Settings::memory>,
         [](const K& k, const G&, const C&) { return Cell(std::string(memory_name(k.destination))); }},
        {of_calls({"COPIES", "copies", Unit::count, 9}), unless_failed<C>, count_of<&G::copies>,
         "Copies, sets and prefetches that were made. Copies under stream capture are counted separately. So are "
         "failed copies, with `-l` or `-x`; without these options there is no return probe, and a failed call counts "
         "as made. With `-x`, only ERRORS and ASKED are shown."},
        {of_calls({"COPY/s", "copies_per_second", Unit::rate, 9}), unless_failed<C>, rate_of<&G::copies>,
         "Copies per second of the interval."},
        {of_calls({"", "calls", Unit::count}), made_in_json, count_of<&G::calls>,
         "Calls that made the copies; one call may make a batch of them."},
        {of_calls({"CAPTURED", "captured", Unit::count, 8}), unless_failed_if<C, &C::captured>, count_of<&G::captured>,
         "Copies into a stream under capture: they become part of a graph and copy nothing now. The column appears "
         "only if there are such copies."},
        errors_field<K, G, C>,
        {of_calls({"BYTES", "bytes", Unit::bytes, 7}), unless_failed<C>, count_of<&G::bytes>,
         "Bytes of the copies that were made. K, M and G are 1024, 1024^2 and 1024^3."},
        {{"ASKED", "failed_bytes", Unit::bytes, 7},
         for_failed_bytes,
         count_of<&G::failed_bytes>,
         "With `-x`, the bytes that failed calls requested; in JSON also with `-l`."},
        F{of_calls({"BYTES/s", "bytes_per_second", Unit::rate, 8}), unless_failed<C>, rate_of<&G::bytes>,
          "BYTES per second of the interval."}
            .in_text(whole_rate_of<&G::bytes>, Unit::bytes),
        {{"AVERAGE", "average_bytes", Unit::bytes, 7},
         unless_failed<C>,
         [](const K&, const G& g, const C&) { return g.sized() ? Cell(g.bytes / g.sized()) : Cell(); },
         "Average size of a copy, without copies of unknown size."},
        {of_calls({"UNSIZED", "unsized", Unit::count, 7}), unless_failed_if<C, &C::unsized>, count_of<&G::unsized>,
         "Copies of unknown size. They are included in COPIES, but not in BYTES, AVERAGE or <64K%. The column appears "
         "only if there are such copies."},
        {{"SYNC%", "", Unit::percent, 6},
         [](const C& c) { return c.settings.form ? Shown::no : unless_failed<C, Shown::text>(c); },
         [](const K&, const G& g, const C&) { return share(g.synchronous, g.copies); },
         "Percentage (in JSON, number) of copies made by functions that wait until the copy is complete. Sets never "
         "wait. Text does not show this column together with FORM."},
        {of_calls({"", "synchronous", Unit::count}), made_in_json, count_of<&G::synchronous>},
        {{"<64K%", "", Unit::percent, 6},
         unless_failed<C, Shown::text>,
         [](const K&, const G& g, const C&) { return share(g.small, g.sized()); },
         "Percentage (in JSON, number) of copies smaller than 64 KiB."},
        {of_calls({"", "small", Unit::count}), made_in_json, count_of<&G::small>},
    },
    latency_fields<K, G, C>, {result_field<K, G, C>, result_code_field<K, G, C>});

bool has_source(const CallLine& line)
{
    const uint8_t direction = line.call.key.copy.direction;
    return direction != DIRECTION_SET && direction != DIRECTION_PREFETCH;
}

Cell memory_cell(int memory)
{
    return std::string(memory_name(static_cast<uint8_t>(memory)));
}

constexpr LineField fields_of_lines[] = {
    line_layer,
    line_vendor,
    line_stream,
    {{"KIND", "kind", Unit::text, 8},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(std::string(direction_name(l.call.key.copy.direction))); },
     "Kind of copy, see `DESCRIPTION`."},
    {{"FORM", "form", Unit::text, 5},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(form_in_json(l.call.key.flags & CALL_ASYNCHRONOUS)); },
     "`sync` or `async`."},
    {{"SIZE", "bytes", Unit::bytes, 7},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return l.call.copy.sized ? Cell(uint64_t{l.call.copy.bytes}) : Cell();
     },
     "Bytes of this copy."},
    {{"FROM", "source", Unit::text, 8},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) {
         return has_source(l) ? memory_cell(l.call.key.copy.memory >> 4) : Cell();
     },
     "Kind of memory of the source (FROM) and of the destination (TO)."},
    {{"TO", "destination", Unit::text, 8},
     always<LineContext>,
     [](const CallLine& l, const LineContext&) { return memory_cell(l.call.key.copy.memory & 15); }},
    {{"", "source_address", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return has_source(l) ? Cell(uint64_t{l.call.copy.source}) : Cell(); },
     "Addresses of source and destination, or the handle of an array; 0x0 for a variable given by name."},
    {{"", "destination_address", Unit::hex},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.copy.destination}); }},
    line_latency,
    line_result,
    line_result_code,
    line_captured,
    {{"", "copies", Unit::count},
     json_only<LineContext>,
     [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.copy.copies}); },
     "Number of copies that the line describes: 1, or more on the last line of a batch that is too long for one line "
     "per copy."},
    line_function,
};

void print_histograms(Output& output, const CopyGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    const Measure measure = settings.histogram_of;
    const bool sizes = measure == Measure::size;
    const std::string_view unit = sizes ? "bytes" : measure == Measure::rate ? "MB/s" : context.options.unit_name();
    print_call_histograms(output, groups.groups(), sizes ? &G::sizes : &G::duration, unit, context, wall_ns,
                          [&](Label& label, const K& key, const G&) {
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
                          });
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

void print_groups(Output& output, const CopyGroups& groups, Context context, uint64_t wall_ns)
{
    if (context.settings.histogram())
        return print_histograms(output, groups, context, wall_ns);
    for (const auto& [key, group] : groups.groups()) {
        context.captured |= group.captured != 0;
        context.unsized |= group.unsized != 0;
    }
    print_table<K, G, C>(output, fields, groups.groups(), context, wall_ns, context.settings.sort,
                         [](const G& group) { return static_cast<double>(group.bytes + group.failed_bytes); });
}

} // namespace gpusnoop::cudamemcpy
