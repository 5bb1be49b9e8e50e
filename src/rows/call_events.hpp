// SPDX-License-Identifier: Apache-2.0
// Output of one line per call (-e): the columns that all tools share, followed by the tool's own.
#pragma once

#include "base/clock.hpp"
#include "names/name_messages.hpp"
#include "rows/call_fields.hpp"
#include "rows/field.hpp"
#include "rows/output.hpp"
#include "rows/who.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// A call and the data that its line shows.
struct CallLine {
    const call_event& call;
    uint64_t since_ns = 0; // time since the first line
    uint64_t wall_ns = 0;
    KernelName kernel{}; // only for launches
};

using LineContext = CallContext<CallSettings>;
using LineField = Field<LineContext, CallLine>;

// The first columns of a line. The columns of the process's owner and of the tool follow.
template<class C, class L>
inline constexpr Field<C, L> first_line_fields[] = {
    {{"TIME", "time", Unit::time, 8},
     [](const C& c) { return c.options.timestamps ? Shown::both : Shown::json; },
     [](const L& l, const C&) { return Cell(l.wall_ns); },
     "Time at which the call was entered. TIME is the time of day. TIME(s) is in seconds since the first line; its "
     "JSON value is in nanoseconds of CLOCK_MONOTONIC."},
    Field<C, L>{{"TIME(s)", "time_ns", Unit::seconds, 11},
                always<C>,
                [](const L& l, const C&) { return Cell(uint64_t{l.call.time_ns}); }}
        .in_text([](const L& l, const C&) { return Cell(l.since_ns); }, Unit::seconds),
    {{"PID", "pid", Unit::count, 7},
     always<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.key.image.pid}); },
     about_pid},
    {{"TID", "tid", Unit::count, 7},
     always<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.tid}); },
     about_tid},
    {{"COMM", "comm", Unit::text, 15},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(l.call.comm, strnlen(l.call.comm, sizeof(l.call.comm)))); },
     "Name of the thread."},
};

inline constexpr LineField line_layer = {
    {"LAYER", "layer", Unit::text, 7},
    [](const LineContext& c) { return c.settings.driver && c.settings.runtime ? Shown::both : Shown::json; },
    [](const CallLine& l, const LineContext&) { return layer_name(l.call.key.layer); },
    about_layer};

inline constexpr LineField line_vendor = {
    {"VENDOR", "vendor", Unit::text, 7},
    json_only<LineContext>,
    [](const CallLine& l, const LineContext&) { return vendor_name(vendor_of(l.call.key.layer)); },
    about_vendor};

inline constexpr LineField line_stream = {
    {"STREAM", "stream", Unit::hex, 14},
    always<LineContext>,
    [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.key.stream}); },
    about_stream};

inline constexpr LineField line_latency = {
    {"LAT(us)", "latency_ns", Unit::ns_as_us, 8},
    with_latency<LineContext>,
    [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.duration_ns}); },
    "Time from entry to return."};

inline constexpr LineField line_result = {{"RESULT", "result", Unit::text, 28},
                                          with_results<LineContext>,
                                          [](const CallLine& l, const LineContext&) {
                                              const call_key& key = l.call.key;
                                              return Cell(key.result ? result_name(library_of(key.layer), key.result)
                                                                     : std::string("ok"));
                                          },
                                          "Result of the call, as name and number; `ok` for success."};

inline constexpr LineField line_result_code = {
    {"", "result_code", Unit::count},
    [](const LineContext& c) { return c.results() ? Shown::json : Shown::no; },
    [](const CallLine& l, const LineContext&) { return Cell(int64_t{l.call.key.result}); }};

inline constexpr LineField line_captured = {
    {"", "captured", Unit::count},
    json_only<LineContext>,
    [](const CallLine& l, const LineContext&) { return Cell(uint64_t{l.call.key.flags & CALL_RECORDED ? 1U : 0U}); },
    "1 for a call under stream capture, which becomes part of a graph, else 0."};

inline constexpr LineField line_function = {
    {"FUNCTION", "function", Unit::text, 8},
    always<LineContext>,
    [](const CallLine& l, const LineContext& c) { return function_name(c.probes, l.call.key.function); },
    about_function};

// All columns that a line can have. own: the tool's own columns.
template<class C, class L>
std::vector<Column> columns_of_lines(std::span<const Field<C, L>> own)
{
    std::vector<Column> all = documented_columns(first_line_fields<C, L>);
    EventWho::add_columns(all, true);
    std::ranges::copy(documented_columns(own), std::back_inserter(all));
    return all;
}

// Prints one line per call. Line is CallLine or a type with the same members; Context is a CallContext.
template<class Line, class Context>
class CallEvents {
public:
    CallEvents(std::span<const Field<Context, Line>> own, const Context& context)
        : context_(context), who_(context.processes), reported_(context.processes),
          wall_offset_ns_(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC))
    {
        for (const auto& field : first_line_fields<Context, Line>)
            add(field);
        owner_column_ = columns_.size();
        who_.add_columns(columns_, context.options.extra_columns);
        for (const auto& field : own)
            add(field);
        row_.resize(columns_.size());
    }

    void print(Output& output, Line line, ExtraLines below)
    {
        const auto& call = line.call;
        if (!first_ns_)
            first_ns_ = call.time_ns;
        // Calls made on different CPUs may arrive out of order, so the first line printed is not always the earliest.
        line.since_ns = call.time_ns > first_ns_ ? call.time_ns - first_ns_ : 0;
        line.wall_ns = call.time_ns + wall_offset_ns_;
        size_t i = 0;
        for (const auto& field : fields_) {
            if (i == owner_column_)
                i = who_.fill(row_, i, call.key.image, call.key.cgroups);
            row_[i++] = field.value(line, context_);
        }
        if (context_.options.writes_json())
            if (Output* const programs = output.for_programs())
                reported_.report(*programs, call.key.image, call.key.cgroups, call.time_ns);
        output.event(columns_, row_, below);
    }

private:
    // Adds the columns of a field, unless this run cannot fill them.
    void add(const Field<Context, Line>& field)
    {
        const size_t before = fields_.size();
        add_shown(fields_, field, field.shown(context_));
        for (size_t i = before; i < fields_.size(); i++)
            columns_.push_back(fields_[i].column);
    }

    Context context_;
    EventWho who_;
    ReportedProcesses reported_;
    uint64_t wall_offset_ns_;
    std::vector<Column> columns_;
    std::vector<ShownField<Context, Line>> fields_; // fields of all columns except the owner columns, which who_ fills
    size_t owner_column_ = 0;                       // index of the first column that who_ fills
    Row row_;                                       // reused for each line
    uint64_t first_ns_ = 0;
};

} // namespace gpusnoop
