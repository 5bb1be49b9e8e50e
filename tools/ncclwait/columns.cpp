// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/columns.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpusnoop::ncclwait {
namespace {

using K = CollectiveKey;
using G = CollectiveGroup;
using C = Context;

// Mean of n values; an empty cell if n is 0.
Cell mean(uint64_t sum, uint64_t n)
{
    return n ? Cell(sum / n) : Cell();
}

Cell percentile(const Histogram& histogram, double share)
{
    return histogram.total() ? Cell(histogram.percentile(share)) : Cell();
}

// A cell with one of the row's sums.
template<uint64_t CollectiveSums::*member>
Cell sum(const K&, const G& g, const C&)
{
    return Cell(g.sums.*member);
}

// Values of aligned calls are marked as estimates.
Cell as_joined(const G& g, const Cell& cell)
{
    return g.joined.contains(Joined::aligned) ? estimate_of(cell) : cell;
}

// The rank that arrived last most often; null if no rank was last, or if the row has several communicators.
const std::pair<const unsigned, G::Late>* straggler(const G& g)
{
    const auto top = std::ranges::max_element(g.late, {}, [](const auto& rank) { return rank.second.calls; });
    return top == g.late.end() || !top->second.calls || g.communicators.size() > 1 ? nullptr : &*top;
}

// False for a row that sums all ranks of several communicators. One of these ranks is always last, so counting the
// calls in which one was last would show nothing.
bool has_last_calls(const G& g, const C& c)
{
    return c.of_ranks() || g.communicators.size() == 1;
}

// Calls in which a rank arrived last. A row about a communicator counts the calls in which the communicator's straggler
// was last. A row about ranks counts the calls in which one of the row's ranks was last.
G::Late last_calls(const G& g, const C& c)
{
    if (c.of_ranks() || g.communicators.size() > 1)
        return {g.sums.last, g.sums.late_ns};
    const auto* late = straggler(g);
    return late ? late->second : G::Late();
}

// Number of joined calls. A row about a communicator counts each collective once; a row about ranks counts it once per
// rank.
uint64_t joined_calls(const G& g, const C& c)
{
    return c.of_ranks() ? g.sums.joined : g.sums.last;
}

Cell if_joined(const G& g, uint64_t value)
{
    return g.sums.joined ? Cell(value) : Cell();
}

// Total CPU time of the calling threads; nullopt if it is unknown for all of them.
std::optional<CallerCpu::Share> cpu_of(const G& g, const C& c)
{
    std::optional<CallerCpu::Share> sum;
    for (const Caller& caller : g.callers)
        if (const auto one = c.cpu.of(caller)) {
            CallerCpu::Share& all = sum ? *sum : sum.emplace();
            all.covered_ns = std::max(all.covered_ns, one->covered_ns);
            all.used_ns += one->used_ns;
            all.waited_ns += one->waited_ns;
        }
    return sum;
}

template<uint64_t CallerCpu::Share::*part>
Cell cpu_percent(const K&, const G& g, const C& c)
{
    const auto sum = cpu_of(g, c);
    return sum ? share((*sum).*part, sum->covered_ns) : Cell();
}

template<uint64_t CallerCpu::Share::*part>
Cell cpu_cell(const K&, const G& g, const C& c)
{
    const auto sum = cpu_of(g, c);
    return sum ? Cell((*sum).*part) : Cell();
}

template<Shown where>
Shown of_one_rank(const C& c)
{
    return c.settings.rank ? unless_failed<C, where>(c) : Shown::no;
}

// Shows columns that need all ranks of a communicator. In text, they are hidden if a row may have only some ranks.
Shown of_all_ranks(const C& c)
{
    return unless_failed<C>(c) == Shown::no ? Shown::no : c.of_ranks() ? Shown::json : Shown::both;
}

Cell joined_cell(const G& g)
{
    constexpr std::string_view names[] = {"alone", "not yet", "exact", "aligned"};
    return g.hash && g.joined.size() == 1 ? Cell(std::string(names[static_cast<size_t>(*g.joined.begin())])) : Cell();
}

// As text, because many JSON readers do not keep 64-bit numbers exact.
Cell hash_cell(const G& g)
{
    return g.hash ? Cell(fmt::format("{:016x}", *g.hash)) : Cell();
}

std::string operations(const G& g, size_t max)
{
    std::vector<std::string> names(g.operations.begin(), g.operations.end());
    const size_t all = names.size();
    names.resize(std::min(all, max));
    return fmt::format("{}", fmt::join(names, ",")) + (all > max ? fmt::format("+{}", all - max) : "");
}

using F = Field<C, K, G>;

constexpr F fields[] = {
    {{"COMMUNICATOR", "communicator", Unit::text, 16},
     always<C>,
     [](const K&, const G& g, const C&) { return hash_cell(g); },
     about_communicator},
    {{"RANK", "rank", Unit::count, 4},
     where_set<C, &Settings::rank>,
     [](const K& k, const G&, const C&) { return cell_if(k.rank); },
     "Rank within the communicator (`--by rank`)."},
    {{"GPU", "device", Unit::count, 3},
     where_set<C, &Settings::rank>,
     [](const K&, const G& g, const C&) { return cell_if(g.device); },
     "CUDA device number of the rank's GPU in its process (`--by rank`).",
     extra},
    {{"RANKS", "", Unit::text, 5},
     [](const C& c) { return c.settings.rank ? Shown::no : Shown::text; },
     [](const K&, const G& g, const C&) {
         return g.ranks && g.here ? Cell(fmt::format("{}/{}", *g.here, *g.ranks)) : Cell();
     },
     about_ranks},
    {{"", "ranks_here", Unit::count}, json_only<C>, [](const K&, const G& g, const C&) { return cell_if(g.here); }},
    {{"", "ranks", Unit::count}, json_only<C>, [](const K&, const G& g, const C&) { return cell_if(g.ranks); }},
    {{"SIZE", "size_bytes", Unit::bytes, 6},
     where_set<C, &Settings::size>,
     [](const K& k, const G&, const C&) { return cell_if(k.size); },
     "Lower limit of the calls' size, a power of two: the calls move at least this many bytes, and less than twice as "
     "many (`--by size`). Empty if their size is not known."},
    {{"STREAM", "stream", Unit::hex, 14},
     where_set<C, &Settings::stream>,
     [](const K& k, const G&, const C&) { return cell_if(k.stream); },
     "Handle of the stream (`--by stream`); empty for calls without one. Handles are only valid within a process."},
    {{"CALLS/s", "", Unit::rate, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) { return per_second(g.sums.calls, c); },
     "Calls per second, summed over all ranks of the row."},
    {{"CALLS", "calls", Unit::count, 7}, unless_failed<C>, sum<&CollectiveSums::calls>, "", extra},
    {{"BYTES/s", "", Unit::bytes, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         return Cell(static_cast<uint64_t>(static_cast<double>(g.sums.bytes) / c.seconds));
     },
     "Bytes that the calls move per second, counted as in nccl-tests: number of elements times element size; for "
     "AllGather, ReduceScatter, AlltoAll, Gather and Scatter, also times the number of ranks. Bytes count when "
     "a call is enqueued, not when the GPU moves them, so this is not a bus bandwidth."},
    {{"BYTES", "bytes", Unit::bytes, 7}, unless_failed<C>, sum<&CollectiveSums::bytes>, "", extra},
    {{"SIZE50", "size_p50_bytes", Unit::bytes, 6},
     [](const C& c) {
         return c.settings.rank ? unless_failed<C, Shown::json>(c) : unless_failed<C>(c);
     }, // with --by rank only in JSON, because all ranks have the same sizes
     [](const K&, const G& g, const C&) { return percentile(g.sums.sizes, 0.5); },
     "Median number of bytes that a call moves. With `--by rank`, shown only if `--columns` adds it, because it is the "
     "same for all ranks."},
    {{"ENQ(us)", "", Unit::ns_as_us, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C&) { return mean(g.sums.enqueue_ns, g.sums.calls); },
     "Average duration of a call on the CPU, including its share of ncclGroupEnd; in JSON, the sum. A call returns as "
     "soon as it is enqueued, so this is not GPU time."},
    {{"", "enqueue_ns", Unit::count}, unless_failed<C, Shown::json>, sum<&CollectiveSums::enqueue_ns>},
    {{"WAIT(us)", "", Unit::ns_as_us, 8},
     [](const C& c) { return c.of_ranks() ? unless_failed<C, Shown::text>(c) : Shown::no; },
     [](const K&, const G& g, const C&) { return as_joined(g, mean(g.sums.wait_ns, g.sums.joined)); },
     "Average time from a rank's arrival to the last rank's; in JSON, the sum over calls and ranks. It is the GPU that "
     "waits, not the CPU in the call."},
    {{"", "wait_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C&) { return if_joined(g, g.sums.wait_ns); }},
    {{"SKEW50", "skew_p50_ns", Unit::ns_as_us, 6},
     of_all_ranks,
     [](const K&, const G& g, const C&) { return as_joined(g, percentile(g.sums.skews, 0.5)); },
     "Time from the first rank's arrival to the last rank's: median and 99th percentile of joined calls, in "
     "microseconds. A row with only some ranks of a communicator includes only the calls in which one of them was "
     "last."},
    {{"SKEW99", "skew_p99_ns", Unit::ns_as_us, 6},
     of_all_ranks,
     [](const K&, const G& g, const C&) { return as_joined(g, percentile(g.sums.skews, 0.99)); }},
    {{"LAST", "last_rank", Unit::count, 4},
     [](const C& c) { return c.of_ranks() ? Shown::no : unless_failed<C>(c); },
     [](const K&, const G& g, const C&) {
         const auto* late = straggler(g);
         return late ? Cell(uint64_t{late->first}) : Cell();
     },
     "The straggler: the rank that arrived last most often."},
    {{"LAST%", "", Unit::percent, 5},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         return has_last_calls(g, c) ? share(last_calls(g, c).calls, joined_calls(g, c)) : Cell();
     },
     "Percentage of joined calls in which the rank in LAST arrived last. In tables without LAST: percentage in which "
     "one of the row's ranks arrived last. If no rank is slow, all ranks have similar percentages."},
    {{"", "last_calls", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) {
         return has_last_calls(g, c) ? if_joined(g, last_calls(g, c).calls) : Cell();
     }},
    {{"", "joined_calls", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) { return Cell(joined_calls(g, c)); }},
    {{"LATE(us)", "", Unit::ns_as_us, 8},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         const G::Late late = last_calls(g, c);
         return as_joined(g, mean(late.ns, late.calls));
     },
     "Average time from the second-last arrival to the last one, in the calls that LAST% counts: the time that a call "
     "would save if its last rank were on time. JSON has the sum of these times instead."},
    {{"", "late_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) { return if_joined(g, last_calls(g, c).ns); }},
    {{"CPU%", "", Unit::percent, 5},
     of_one_rank<Shown::text>,
     cpu_percent<&CallerCpu::Share::used_ns>,
     "With `--by rank`: share of the time in which the rank's calling threads ran (CPU%), or were runnable but had no "
     "CPU (RUNQ%), because other threads used the CPUs or the cgroup was throttled. The measurement starts within a "
     "second of a thread's first call. Values may exceed 100 if several threads call. A late rank with a high RUNQ% is "
     "late because it lacks CPU time; `cudagap`(8) shows why."},
    {{"RUNQ%", "", Unit::percent, 5}, of_one_rank<Shown::text>, cpu_percent<&CallerCpu::Share::waited_ns>},
    {{"", "cpu_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::used_ns>},
    {{"", "run_queue_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::waited_ns>},
    {{"", "cpu_covered_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::covered_ns>},
    {{"UNJOINED", "unjoined_calls", Unit::count, 8},
     unless_failed_if<C, &C::unjoined>,
     sum<&CollectiveSums::unjoined>,
     "Calls that could not be joined: only some ranks entered the collective, or the matching calls of other ranks are "
     "not known. The column appears only if there are such calls."},
    {{"CAPTURED", "captured_calls", Unit::count, 8},
     unless_failed<C>,
     sum<&CollectiveSums::captured>,
     "Calls that were captured into graphs.",
     extra},
    {{"ERRORS", "errors", Unit::count, 6},
     [](const C& c) { return c.errors || c.options.failed_only ? Shown::both : Shown::json; },
     sum<&CollectiveSums::errors>,
     "Calls that failed, and asynchronous errors of communicators. The column appears only if there are errors. With "
     "`-x`, the table has only this column, RESULT, and the columns that identify a row. Failed calls without a "
     "communicator, such as ncclCommInitRank, share a row with an empty COMMUNICATOR; `--by pid,op` separates them."},
    {{"RESULT", "result", Unit::text, 22},
     where_failed<C, Shown::both>,
     [](const K& k, const G&, const C&) { return Cell(result_name(Library::nccl, k.result)); },
     "Result of the call, by name and number; with `-x`."},
    {{"", "result_code", Unit::count},
     where_failed<C, Shown::json>,
     [](const K& k, const G&, const C&) { return Cell(int64_t{k.result}); }},
    {{"UNSIZED", "unsized_calls", Unit::count, 7},
     unless_failed<C>,
     sum<&CollectiveSums::unsized>,
     "Calls whose bytes are not known: calls with an unknown data type, ncclAllToAllv, ncclSignal and ncclWaitSignal.",
     extra},
    {{"JOIN", "join", Unit::text, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C&) { return joined_cell(g); },
     "How the ranks' calls are joined: `exact` (by sequence number, because the communicator's creation was traced), "
     "`aligned` (by matching operations, sizes and waits), `not yet` (too few calls have been seen), or `alone` (there "
     "is only one rank on this machine).",
     extra},
    F{{"OP", "op", Unit::text, 9},
      always<C>,
      [](const K&, const G& g, const C&) { return Cell(operations(g, g.operations.size())); },
      "The operation. If the row has several, the alphabetically first one and the number of others, such as "
      "`AllGather+1`; in JSON, all of them."}
        .in_text([](const K&, const G& g, const C&) { return Cell(operations(g, 1)); }),
};

} // namespace

CollectiveGroups group_parts(const std::vector<Collectives::Part>& parts, const Settings& settings,
                             Processes& processes)
{
    CollectiveGroups groups;
    for (const Collectives::Part& part : parts) {
        if (settings.failed && !part.sums.errors)
            continue;
        CollectiveKey key{.who = who_key(settings.view.who, processes, part.image, part.tid, {}),
                          .communicator = settings.communicator ? part.communicator : 0,
                          .rank = {},
                          .operation = settings.op ? part.operation : std::string_view(),
                          .size = part.size,
                          .stream = part.stream,
                          .result = part.result};
        if (settings.rank && part.hash)
            key.rank = part.rank;
        CollectiveGroup& group = groups[key];
        group.who.add(part.image, processes.owner(part.image, {}));
        group.communicators.insert(part.communicator);
        const bool one = group.communicators.size() == 1 && part.hash;
        const auto only = [one](auto value) { return one ? std::optional(value) : std::nullopt; };
        group.hash = only(part.hash.value_or(0));
        group.ranks = only(part.ranks);
        group.here = only(part.here);
        group.device = only(part.device);
        group.joined.insert(part.joined);
        group.operations.insert(part.operation);
        group.late[part.rank].calls += part.sums.last;
        group.late[part.rank].ns += part.sums.late_ns;
        for (const uint32_t tid : part.callers)
            group.callers.insert({part.image, tid});
        group.sums.add(part.sums);
    }
    return groups;
}

void check_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort,
                                    {{"line", columns_of_lines(line_fields())}, {"verdict", verdict_columns()}});
}

void print_groups(Output& output, const CollectiveGroups& groups, const Context& context, uint64_t wall_ns,
                  const std::function<Frames(const CollectiveGroup&)>& frames)
{
    Context shown = context;
    for (const auto& [key, group] : groups) {
        shown.errors |= group.sums.errors > 0;
        shown.unjoined |= group.sums.unjoined > 0;
    }
    print_table<K, G, C>(
        output, fields, groups, shown, wall_ns, context.settings.sort,
        [&](const G& group) {
            return static_cast<double>(context.settings.failed ? group.sums.errors : group.sums.wait_ns);
        },
        [&](const K&, const G& group) { return frames(group); });
}

} // namespace gpusnoop::ncclwait
