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

// Of nothing there is no mean.
Cell mean(uint64_t sum, uint64_t n)
{
    return n ? Cell(sum / n) : Cell();
}

Cell percentile(const Histogram& histogram, double share)
{
    return histogram.total() ? Cell(histogram.percentile(share)) : Cell();
}

// A sum of the row's calls.
template<uint64_t CollectiveSums::*member>
Cell sum(const K&, const G& g, const C&)
{
    return Cell(g.sums.*member);
}

// What is told of calls that were put together by what they are, and not by their number.
Cell as_joined(const G& g, const Cell& cell)
{
    return g.joined.contains(Joined::aligned) ? estimate_of(cell) : cell;
}

// The rank that came last most often; null where none did, or it is one of several communicators'.
const std::pair<const unsigned, G::Late>* latest(const G& g)
{
    const auto most = std::ranges::max_element(g.late, {}, [](const auto& rank) { return rank.second.calls; });
    return most == g.late.end() || !most->second.calls || g.communicators.size() > 1 ? nullptr : &*most;
}

// In a row of several communicators with all of their ranks, somebody always is the last one.
bool is_of_some(const G& g, const C& c)
{
    return c.of_ranks() || g.communicators.size() == 1;
}

// Of a communicator: of the rank that came last most often. Of some of its ranks: of them.
G::Late last_calls(const G& g, const C& c)
{
    if (c.of_ranks() || g.communicators.size() > 1)
        return {g.sums.last, g.sums.late_ns};
    const auto* late = latest(g);
    return late ? late->second : G::Late();
}

// Each collective is one of a communicator, and one of each of its ranks.
uint64_t joined_calls(const G& g, const C& c)
{
    return c.of_ranks() ? g.sums.joined : g.sums.last;
}

Cell if_joined(const G& g, uint64_t value)
{
    return g.sums.joined ? Cell(value) : Cell();
}

// Of the threads that call, together; null: not known of any.
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

// What differs between the ranks of a communicator, in its rows only.
Shown of_all_ranks(const C& c)
{
    return unless_failed<C>(c) == Shown::no ? Shown::no : c.of_ranks() ? Shown::json : Shown::both;
}

Cell joined_cell(const G& g)
{
    constexpr std::string_view names[] = {"alone", "not yet", "exact", "aligned"};
    return g.hash && g.joined.size() == 1 ? Cell(std::string(names[static_cast<size_t>(*g.joined.begin())])) : Cell();
}

// Exact in every reader of JSON, which a number of 64 bits is not.
Cell hash_cell(const G& g)
{
    return g.hash ? Cell(fmt::format("{:016x}", *g.hash)) : Cell();
}

std::string operations(const G& g, size_t most)
{
    std::vector<std::string> names(g.operations.begin(), g.operations.end());
    const size_t all = names.size();
    names.resize(std::min(all, most));
    return fmt::format("{}", fmt::join(names, ",")) + (all > most ? fmt::format("+{}", all - most) : "");
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
     "The rank in it (`--by rank`)."},
    {{"GPU", "device", Unit::count, 3},
     where_set<C, &Settings::rank>,
     [](const K&, const G& g, const C&) { return cell_if(g.device); },
     "Its device, as the process numbers them (`--by rank`).",
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
     "The power of two that calls have as many bytes as, or up to twice as many (`--by size`); unknown if the size of "
     "calls is."},
    {{"STREAM", "stream", Unit::hex, 14},
     where_set<C, &Settings::stream>,
     [](const K& k, const G&, const C&) { return cell_if(k.stream); },
     "Handle of the stream (`--by stream`); unknown for calls that take none. Every process has handles of its own."},
    {{"CALLS/s", "", Unit::rate, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) { return per_second(g.sums.calls, c); },
     "Calls by all ranks of the row."},
    {{"CALLS", "calls", Unit::count, 7}, unless_failed<C>, sum<&CollectiveSums::calls>, "", extra},
    {{"BYTES/s", "", Unit::bytes, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         return Cell(static_cast<uint64_t>(static_cast<double>(g.sums.bytes) / c.seconds));
     },
     "Bytes of these calls, as nccl-tests counts them: elements times their size; for AllGather, ReduceScatter, "
     "AlltoAll, Gather and Scatter, times the number of ranks. This is no bandwidth of any bus: when a call is "
     "executed "
     "is not seen."},
    {{"BYTES", "bytes", Unit::bytes, 7}, unless_failed<C>, sum<&CollectiveSums::bytes>, "", extra},
    {{"SIZE50", "size_p50_bytes", Unit::bytes, 6},
     [](const C& c) {
         return c.settings.rank ? unless_failed<C, Shown::json>(c) : unless_failed<C>(c);
     }, // all have the same
     [](const K&, const G& g, const C&) { return percentile(g.sums.sizes, 0.5); },
     "The median size of a call. In rows of ranks only with `--columns`: all have the same."},
    {{"ENQ(us)", "", Unit::ns_as_us, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C&) { return mean(g.sums.enqueue_ns, g.sums.calls); },
     "How long a call takes on the CPU, with its part of the group's end; in JSON the sum. Collectives return when "
     "they "
     "are enqueued, so this is no time on the GPU."},
    {{"", "enqueue_ns", Unit::count}, unless_failed<C, Shown::json>, sum<&CollectiveSums::enqueue_ns>},
    {{"WAIT(us)", "", Unit::ns_as_us, 8},
     [](const C& c) { return c.of_ranks() ? unless_failed<C, Shown::text>(c) : Shown::no; },
     [](const K&, const G& g, const C&) { return as_joined(g, mean(g.sums.wait_ns, g.sums.joined)); },
     "From when a rank arrived to when the last one did, of an average call; in JSON the sum over ranks. The CPU does "
     "not wait in the call: it is the GPU that does."},
    {{"", "wait_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C&) { return if_joined(g, g.sums.wait_ns); }},
    {{"SKEW50", "skew_p50_ns", Unit::ns_as_us, 6},
     of_all_ranks,
     [](const K&, const G& g, const C&) { return as_joined(g, percentile(g.sums.skews, 0.5)); },
     "From the first rank's arrival to that of the last one: median and 99th percentile of joined calls, in "
     "microseconds; in a row of ranks, of those that one of them came last to."},
    {{"SKEW99", "skew_p99_ns", Unit::ns_as_us, 6},
     of_all_ranks,
     [](const K&, const G& g, const C&) { return as_joined(g, percentile(g.sums.skews, 0.99)); }},
    {{"LAST", "last_rank", Unit::count, 4},
     [](const C& c) { return c.of_ranks() ? Shown::no : unless_failed<C>(c); },
     [](const K&, const G& g, const C&) {
         const auto* late = latest(g);
         return late ? Cell(uint64_t{late->first}) : Cell();
     },
     "The rank that came last most often."},
    {{"LAST%", "", Unit::percent, 5},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         return is_of_some(g, c) ? share(last_calls(g, c).calls, joined_calls(g, c)) : Cell();
     },
     "In how many of the joined calls. In rows of ranks: in how many of its calls this one did. If no rank is slow, "
     "each has its share."},
    {{"", "last_calls", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) { return is_of_some(g, c) ? if_joined(g, last_calls(g, c).calls) : Cell(); }},
    {{"", "joined_calls", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) { return Cell(joined_calls(g, c)); }},
    {{"LATE(us)", "", Unit::ns_as_us, 8},
     unless_failed<C>,
     [](const K&, const G& g, const C& c) {
         const G::Late late = last_calls(g, c);
         return as_joined(g, mean(late.ns, late.calls));
     },
     "By how much in these, after the one before it: what an average one of them would gain if it were on time. In "
     "JSON "
     "the sum."},
    {{"", "late_ns", Unit::count},
     unless_failed<C, Shown::json>,
     [](const K&, const G& g, const C& c) { return if_joined(g, last_calls(g, c).ns); }},
    {{"CPU%", "", Unit::percent, 5},
     of_one_rank<Shown::text>,
     cpu_percent<&CallerCpu::Share::used_ns>,
     "How much of the time the threads of the rank that call ran, and how much they were ready to run but had no CPU, "
     "as others had them or the quota of their cgroup was used up (`--by rank`). Counted from the first time that a "
     "thread is read, which is within a second of its first call; above 100 if several call. A late rank with much "
     "RUNQ% is late for want of a CPU; `cudagap`(8) shows why."},
    {{"RUNQ%", "", Unit::percent, 5}, of_one_rank<Shown::text>, cpu_percent<&CallerCpu::Share::waited_ns>},
    {{"", "cpu_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::used_ns>},
    {{"", "run_queue_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::waited_ns>},
    {{"", "cpu_covered_ns", Unit::count}, of_one_rank<Shown::json>, cpu_cell<&CallerCpu::Share::covered_ns>},
    {{"UNJOINED", "unjoined_calls", Unit::count, 8},
     unless_failed_if<C, &C::unjoined>,
     sum<&CollectiveSums::unjoined>,
     "Collectives that some ranks have come to, and the others never did, or for which it is not known which one of "
     "theirs it belongs to. The column appears only if there are some."},
    {{"CAPTURED", "captured_calls", Unit::count, 8},
     unless_failed<C>,
     sum<&CollectiveSums::captured>,
     "Calls that were captured into graphs.",
     extra},
    {{"ERRORS", "errors", Unit::count, 6},
     [](const C& c) { return c.errors || c.options.failed_only ? Shown::both : Shown::json; },
     sum<&CollectiveSums::errors>,
     "Calls that failed, and errors that a communicator has come to. The column appears only if there are some. With "
     "`-x`, only this one, RESULT, and whose calls they are. Those of no communicator, as of ncclCommInitRank, are in "
     "a "
     "row of an unknown one; `--by pid,op` separates them."},
    {{"RESULT", "result", Unit::text, 22},
     where_failed<C, Shown::both>,
     [](const K& k, const G&, const C&) { return Cell(result_name(Library::nccl, k.result)); },
     "What the call returned, by name and number; with `-x`."},
    {{"", "result_code", Unit::count},
     where_failed<C, Shown::json>,
     [](const K& k, const G&, const C&) { return Cell(int64_t{k.result}); }},
    {{"UNSIZED", "unsized_calls", Unit::count, 7},
     unless_failed<C>,
     sum<&CollectiveSums::unsized>,
     "Calls whose bytes are not known: of an unknown type, ncclAllToAllv, and signals.",
     extra},
    {{"JOIN", "join", Unit::text, 7},
     unless_failed<C>,
     [](const K&, const G& g, const C&) { return joined_cell(g); },
     "How the ranks' calls are put together: `exact` (by number: the communicator was made while it was traced), "
     "`aligned` (see above), `not yet` (nothing that was seen tells), or `alone` (there is one rank here).",
     extra},
    F{{"OP", "op", Unit::text, 9},
      always<C>,
      [](const K&, const G& g, const C&) { return Cell(operations(g, g.operations.size())); },
      "The operation, or the first of several by name, and how many more there are; in JSON all."}
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
