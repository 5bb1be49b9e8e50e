// SPDX-License-Identifier: Apache-2.0
// What is not a row of a table: lines of collectives, verdicts, histograms.
#include "rows/label.hpp"
#include "tools/ncclwait/columns.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop::ncclwait {
namespace {

using C = Context;
using L = RankLine;
using Came = Collectives::Came;
using V = CollectiveVerdict;

constexpr std::string_view joined_names[] = {"alone", "not yet", "exact", "aligned"};

Cell join_cell(const Collectives::Of& of)
{
    return Cell(std::string(joined_names[static_cast<size_t>(of.joined)]));
}

// 0: of none that is known.
Cell hash_cell(uint64_t hash)
{
    return hash ? Cell(fmt::format("{:016x}", hash)) : Cell();
}

// What a communicator is known by.
template<auto get>
constexpr auto of_known = [](const L& l, const C&) { return l.line->of.hash ? Cell(uint64_t{get(l)}) : Cell(); };

const Came& last_of(const Collectives::Line& line)
{
    return *std::ranges::max_element(line.ranks, {}, &Came::ns);
}

uint64_t first_ns(const Collectives::Line& line)
{
    return std::ranges::min_element(line.ranks, {}, &Came::ns)->ns;
}

// After the one before it.
uint64_t late_ns(const Collectives::Line& line)
{
    const Came& last = last_of(line);
    uint64_t before = 0;
    for (const Came& came : line.ranks)
        if (&came != &last)
            before = std::max(before, came.ns);
    return last.ns - before;
}

// What is told of ranks that have come to the same one.
template<auto get>
constexpr auto of_joined = [](const L& l, const C&) { return l.line->joined ? Cell(uint64_t{get(l)}) : Cell(); };

// "0:+0.0 1:+5012.3", in microseconds
Cell offsets(const L& l, const C&)
{
    if (!l.line->joined)
        return {};
    std::string text;
    for (const Came& came : l.line->ranks)
        text += fmt::format("{}{}:+{:.1f}", text.empty() ? "" : " ", came.rank,
                            static_cast<double>(came.ns - first_ns(*l.line)) / 1e3);
    return Cell(text);
}

constexpr Field<C, L> fields_of_lines[] = {
    {{"COMMUNICATOR", "communicator", Unit::text, 16},
     always<C>,
     [](const L& l, const C&) { return hash_cell(l.line->of.hash); },
     about_communicator},
    {{"SEQ", "sequence", Unit::count, 6},
     unless_failed<C>,
     [](const L& l, const C&) { return cell_if(l.line->of.number); },
     "The number of the collective, from 1 on, the same in all ranks on all hosts; sends and receives do not count."},
    {{"RANK", "rank", Unit::count, 4},
     [](const C& c) { return c.options.failed_only ? Shown::both : Shown::json; },
     of_known<[](const L& l) { return l.came->rank; }>,
     "The rank in the communicator, and its device, as the process numbers them."},
    {{"", "device", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.came->device; }>},
    {{"", "ranks_here", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.line->of.here; }>, about_ranks},
    {{"", "ranks", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.line->of.ranks; }>},
    {{"", "join", Unit::text},
     unless_failed<C, Shown::json>,
     [](const L& l, const C&) { return join_cell(l.line->of); },
     "As in tables."},
    {{"OP", "op", Unit::text, 9},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(l.came->operation)); },
     "The operation."},
    {{"SIZE", "bytes", Unit::bytes, 6},
     always<C>,
     [](const L& l, const C&) { return cell_if(l.came->bytes); },
     "Its bytes."},
    {{"RESULT", "result", Unit::text, 22},
     where_failed<C, Shown::both>,
     [](const L& l, const C&) { return Cell(result_name(Library::nccl, l.line->result)); },
     "What the call returned, by name and number; with `-x`."},
    {{"", "result_code", Unit::count},
     where_failed<C, Shown::json>,
     [](const L& l, const C&) { return Cell(int64_t{l.line->result}); }},
    {{"", "offset_ns", Unit::count},
     unless_failed<C, Shown::json>,
     of_joined<[](const L& l) { return l.came->ns - first_ns(*l.line); }>,
     "By how much the rank came after the first one here."},
    {{"LAST", "last_rank", Unit::count, 4},
     unless_failed<C>,
     of_joined<[](const L& l) { return last_of(*l.line).rank; }>,
     "The rank that came last."},
    {{"LATE(us)", "late_ns", Unit::ns_as_us, 8},
     unless_failed<C>,
     of_joined<[](const L& l) { return late_ns(*l.line); }>,
     "By how much the last rank came after the one before it."},
    {{"", "skew_ns", Unit::count},
     unless_failed<C, Shown::json>,
     of_joined<[](const L& l) { return last_of(*l.line).ns - first_ns(*l.line); }>,
     "From the first rank's arrival to that of the last one."},
    {{"", "sync_wait_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const L& l, const C&) { return l.came->wait_ns ? Cell(l.came->wait_ns) : Cell(); },
     "The longest wait for the device of the rank's process that began before its next collective. Unknown if there "
     "was "
     "none."},
    {{"OFFSETS(us)", "", Unit::text, 11}, unless_failed<C, Shown::text>, offsets, "RANK:+OFFSET of each rank here."},
};

const Field<C, V> fields_of_verdicts[] = {
    {{"COMMUNICATOR", "communicator", Unit::text, 16},
     always<C>,
     [](const V& v, const C&) { return hash_cell(v.stall.of.hash); },
     about_communicator},
    {{"", "verdict", Unit::text},
     json_only<C>,
     [](const V& v, const C&) { return Cell(std::string(v.kind)); },
     "`missing`, `mismatch`, `stuck` or `ras`."},
    {{"", "ranks_here", Unit::count},
     json_only<C>,
     [](const V& v, const C&) { return Cell(uint64_t{v.stall.of.here}); },
     about_ranks},
    {{"", "ranks", Unit::count}, json_only<C>, [](const V& v, const C&) { return Cell(uint64_t{v.stall.of.ranks}); }},
    {{"", "join", Unit::text},
     json_only<C>,
     [](const V& v, const C&) { return join_cell(v.stall.of); },
     "As in tables and lines."},
    {{"", "sequence", Unit::count}, json_only<C>, [](const V& v, const C&) { return cell_if(v.stall.of.number); }},
    {{"", "waited_ns", Unit::count},
     json_only<C>,
     [](const V& v, const C&) { return v.stall.since_ns ? Cell(v.time_ns - v.stall.since_ns) : Cell(); },
     "Since the first rank came; if they are stuck, since the last did; unknown if only RAS reports the hang."},
    {{"", "verdict_ranks", Unit::text},
     json_only<C>,
     [](const V& v, const C&) {
         std::string text;
         for (const unsigned rank : v.ranks)
             text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
         return v.ranks.empty() ? Cell() : Cell(text);
     },
     "The ranks that have not come, mean something else than most, or are behind by RAS: numbers with commas between "
     "them."},
    {{"VERDICT", "text", Unit::text},
     always<C>,
     [](const V& v, const C&) { return Cell(fmt::format("{}: {}", v.kind, v.text)); },
     "Which it is, and in words what it is about. The lines below say what ranks do."},
};

const Histogram& measured(const CollectiveSums& sums, Measure measure)
{
    return measure == Measure::skew ? sums.skews : measure == Measure::size ? sums.sizes : sums.enqueues;
}

} // namespace

std::span<const Field<Context, RankLine>> line_fields()
{
    return fields_of_lines;
}

void print_line(Output& output, RankLines& lines, const Collectives::Line& line, const Context& context,
                const std::function<Frames(const Collectives::Came&)>& frames)
{
    const auto print = [&](Output& to, const Came& came) {
        const ProcessInfo& info = context.processes.info(came.image);
        RankLine one;
        one.line = &line;
        one.came = &came;
        one.call.key = {came.image, info.cgroup};
        one.call.time_ns = came.ns;
        one.call.tid = came.tid;
        context.processes.thread_name(came.image, came.tid).copy(one.call.comm, sizeof(one.call.comm) - 1);
        lines.print(to, one, frames(came));
    };
    if (Output* const programs = output.for_programs())
        for (const Came& came : line.ranks)
            print(*programs, came);
    if (Output* const people = output.for_people())
        print(*people, last_of(line));
}

std::vector<Column> verdict_columns()
{
    std::vector<Column> columns{{"TIME", "time", Unit::time, 8}};
    columns.back().about = "When it was found.";
    for (const auto& field : fields_of_verdicts) {
        columns.push_back(documented(field));
        columns.back().in_text = !field.column.header.empty();
    }
    return columns;
}

void print_verdict(Output& output, const CollectiveVerdict& verdict, const Context& context,
                   const std::vector<std::string>& below)
{
    Row row{verdict.time_ns + clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC)};
    for (const auto& field : fields_of_verdicts)
        row.push_back(field.value(verdict, context));
    output.event(verdict_columns(), row, {"doing", below});
}

void print_histograms(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns)
{
    const Settings& settings = context.settings;
    for (const auto& [key, group] : groups) {
        Label label;
        label.fields.emplace_back("measure", settings.measure);
        label.add_who(settings.view.who, key.who, group.who, context.processes);
        if (settings.communicator && group.hash)
            label.add("communicator", hash_cell(*group.hash));
        if (settings.rank)
            label.add("rank", cell_if(key.rank));
        if (settings.op)
            label.add("op", std::string(key.operation));
        if (settings.stream && key.stream)
            label.add("stream", fmt::format("{:#x}", *key.stream));
        if (settings.size)
            label.add("size_bytes", cell_if(key.size));
        output.histogram(label.title, settings.histogram_of == Measure::size ? "bytes" : context.options.unit_name(),
                         measured(group.sums, settings.histogram_of), label.fields, wall_ns);
    }
}

} // namespace gpusnoop::ncclwait
