// SPDX-License-Identifier: Apache-2.0
// Output of lines about collectives, of verdicts, and of histograms.
#include "rows/label.hpp"
#include "tools/ncclwait/columns.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop::ncclwait {
namespace {

using C = Context;
using L = RankLine;
using RankArrival = Collectives::RankArrival;
using V = CollectiveVerdict;

constexpr std::string_view joined_names[] = {"alone", "not yet", "exact", "aligned"};

Cell join_cell(const Collectives::Ref& ref)
{
    return Cell(std::string(joined_names[static_cast<size_t>(ref.joined)]));
}

// Hash of the communicator; an empty cell if it is not known (0).
Cell hash_cell(uint64_t hash)
{
    return hash ? Cell(fmt::format("{:016x}", hash)) : Cell();
}

// Fields that are only valid for a known communicator.
template<auto get>
constexpr auto of_known = [](const L& l, const C&) { return l.line->ref.hash ? Cell(uint64_t{get(l)}) : Cell(); };

const RankArrival& last_of(const Collectives::Line& line)
{
    return *std::ranges::max_element(line.ranks, {}, &RankArrival::ns);
}

uint64_t first_ns(const Collectives::Line& line)
{
    return std::ranges::min_element(line.ranks, {}, &RankArrival::ns)->ns;
}

// Time from the second-last arrival to the last.
uint64_t late_ns(const Collectives::Line& line)
{
    const RankArrival& last = last_of(line);
    uint64_t before = 0;
    for (const RankArrival& arrival : line.ranks)
        if (&arrival != &last)
            before = std::max(before, arrival.ns);
    return last.ns - before;
}

// Fields that are only valid for joined calls.
template<auto get>
constexpr auto of_joined = [](const L& l, const C&) { return l.line->joined ? Cell(uint64_t{get(l)}) : Cell(); };

// "0:+0.0 1:+5012.3", in microseconds
Cell offsets(const L& l, const C&)
{
    if (!l.line->joined)
        return {};
    std::string text;
    for (const RankArrival& arrival : l.line->ranks)
        text += fmt::format("{}{}:+{:.1f}", text.empty() ? "" : " ", arrival.rank,
                            static_cast<double>(arrival.ns - first_ns(*l.line)) / 1e3);
    return Cell(text);
}

constexpr Field<C, L> fields_of_lines[] = {
    {{"COMMUNICATOR", "communicator", Unit::text, 16},
     always<C>,
     [](const L& l, const C&) { return hash_cell(l.line->ref.hash); },
     about_communicator},
    {{"SEQ", "sequence", Unit::count, 6},
     unless_failed<C>,
     [](const L& l, const C&) { return cell_if(l.line->ref.number); },
     "Sequence number of the collective in its communicator, starting at 1. It is the same in all ranks on all hosts. "
     "Sends and receives are not counted."},
    {{"RANK", "rank", Unit::count, 4},
     [](const C& c) { return c.options.failed_only ? Shown::both : Shown::json; },
     of_known<[](const L& l) { return l.arrival->rank; }>,
     "Rank within the communicator, and the CUDA device number of the rank's GPU in the rank's process."},
    {{"", "device", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.arrival->device; }>},
    {{"", "ranks_here", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.line->ref.here; }>, about_ranks},
    {{"", "ranks", Unit::count}, json_only<C>, of_known<[](const L& l) { return l.line->ref.ranks; }>},
    {{"", "join", Unit::text},
     unless_failed<C, Shown::json>,
     [](const L& l, const C&) { return join_cell(l.line->ref); },
     "How the ranks' calls are joined, as in the column JOIN of tables."},
    {{"OP", "op", Unit::text, 9},
     always<C>,
     [](const L& l, const C&) { return Cell(std::string(l.arrival->operation)); },
     "The operation."},
    {{"SIZE", "bytes", Unit::bytes, 6},
     always<C>,
     [](const L& l, const C&) { return cell_if(l.arrival->bytes); },
     "Number of bytes that the call moves."},
    {{"RESULT", "result", Unit::text, 22},
     where_failed<C, Shown::both>,
     [](const L& l, const C&) { return Cell(result_name(Library::nccl, l.line->result)); },
     "Result of the call, by name and number; with `-x`."},
    {{"", "result_code", Unit::count},
     where_failed<C, Shown::json>,
     [](const L& l, const C&) { return Cell(int64_t{l.line->result}); }},
    {{"", "offset_ns", Unit::count},
     unless_failed<C, Shown::json>,
     of_joined<[](const L& l) { return l.arrival->ns - first_ns(*l.line); }>,
     "Time from the first arrival on this machine to this rank's."},
    {{"LAST", "last_rank", Unit::count, 4},
     unless_failed<C>,
     of_joined<[](const L& l) { return last_of(*l.line).rank; }>,
     "The rank that arrived last."},
    {{"LATE(us)", "late_ns", Unit::ns_as_us, 8},
     unless_failed<C>,
     of_joined<[](const L& l) { return late_ns(*l.line); }>,
     "Time from the second-last arrival to the last."},
    {{"", "skew_ns", Unit::count},
     unless_failed<C, Shown::json>,
     of_joined<[](const L& l) { return last_of(*l.line).ns - first_ns(*l.line); }>,
     "Time from the first arrival to the last."},
    {{"", "sync_wait_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const L& l, const C&) { return l.arrival->wait_ns ? Cell(l.arrival->wait_ns) : Cell(); },
     "Longest wait for the GPU in the rank's process that began between this collective and the rank's next. Empty if "
     "there was none."},
    {{"OFFSETS(us)", "", Unit::text, 11},
     unless_failed<C, Shown::text>,
     offsets,
     "Arrival of each rank on this machine, as RANK:+OFFSET. OFFSET is the time since the first arrival."},
};

const Field<C, V> fields_of_verdicts[] = {
    {{"COMMUNICATOR", "communicator", Unit::text, 16},
     always<C>,
     [](const V& v, const C&) { return hash_cell(v.stall.ref.hash); },
     about_communicator},
    {{"", "verdict", Unit::text},
     json_only<C>,
     [](const V& v, const C&) { return Cell(std::string(v.kind)); },
     "Kind of verdict: `missing`, `mismatch`, `stuck` or `ras`."},
    {{"", "ranks_here", Unit::count},
     json_only<C>,
     [](const V& v, const C&) { return Cell(uint64_t{v.stall.ref.here}); },
     about_ranks},
    {{"", "ranks", Unit::count}, json_only<C>, [](const V& v, const C&) { return Cell(uint64_t{v.stall.ref.ranks}); }},
    {{"", "join", Unit::text},
     json_only<C>,
     [](const V& v, const C&) { return join_cell(v.stall.ref); },
     "How the ranks' calls are joined, as in the column JOIN of tables."},
    {{"", "sequence", Unit::count}, json_only<C>, [](const V& v, const C&) { return cell_if(v.stall.ref.number); }},
    {{"", "waited_ns", Unit::count},
     json_only<C>,
     [](const V& v, const C&) { return v.stall.since_ns ? Cell(v.time_ns - v.stall.since_ns) : Cell(); },
     "Time since the first arrival at the collective; for `stuck`, since the last arrival. Empty for `mismatch` and "
     "`ras`."},
    {{"", "verdict_ranks", Unit::text},
     json_only<C>,
     [](const V& v, const C&) {
         std::string text;
         for (const unsigned rank : v.ranks)
             text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
         return v.ranks.empty() ? Cell() : Cell(text);
     },
     "The ranks that are missing, whose call differs from most others, or that are behind according to RAS, separated "
     "by commas."},
    {{"VERDICT", "text", Unit::text},
     always<C>,
     [](const V& v, const C&) { return Cell(fmt::format("{}: {}", v.kind, v.text)); },
     "The kind of verdict, and an explanation. The lines below a verdict show what ranks are doing."},
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
                const std::function<Frames(const Collectives::RankArrival&)>& frames)
{
    const auto print = [&](Output& to, const RankArrival& arrival) {
        const ProcessInfo& info = context.processes.info(arrival.image);
        RankLine one;
        one.line = &line;
        one.arrival = &arrival;
        one.call.key = {arrival.image, info.cgroup};
        one.call.time_ns = arrival.ns;
        one.call.tid = arrival.tid;
        context.processes.thread_name(arrival.image, arrival.tid).copy(one.call.comm, sizeof(one.call.comm) - 1);
        lines.print(to, one, frames(arrival));
    };
    if (Output* const programs = output.for_programs())
        for (const RankArrival& arrival : line.ranks)
            print(*programs, arrival);
    if (Output* const people = output.for_people())
        print(*people, last_of(line));
}

std::vector<Column> verdict_columns()
{
    std::vector<Column> columns{{"TIME", "time", Unit::time, 8}};
    columns.back().about = "Time of detection.";
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
