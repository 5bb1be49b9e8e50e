// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/collective_verdicts.hpp"

#include "base/text.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <compare>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

constexpr std::string_view types[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                      "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
constexpr std::string_view reductions[] = {"sum", "product", "max", "min", "average", "a reduction of its own"};
constexpr std::string_view reducing[] = {"AllReduce", "Reduce", "ReduceScatter", "AllReduceWithBias"};
constexpr std::string_view rooted[] = {"Broadcast", "Reduce", "Gather", "Scatter"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name)
{
    return std::ranges::find(names, name) != names.end();
}

} // namespace

std::string ranks_in_words(std::span<const unsigned> ranks)
{
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0, end = 0; i < ranks.size(); i = end) {
        for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;)
            end++;
        text += fmt::format("{}{}", i ? "," : "", ranks[i]);
        if (end > i + 1)
            text += fmt::format("-{}", ranks[end - 1]);
    }
    return text;
}

std::string collective_in_words(const Collectives::Of& of, const Collectives::Came& came)
{
    std::string text(came.operation);
    if (came.bytes)
        text += fmt::format(" of {}", human_bytes(*came.bytes));
    if (of.number)
        text += fmt::format(" (collective {})", *of.number);
    return text;
}

std::string meaning_in_words(const Collectives::Came& came)
{
    std::string text = fmt::format("{} of {} ", came.operation, came.elements);
    text += came.type < std::size(types) ? types[came.type] : fmt::format("of type {}", came.type);
    if (is_one_of(reducing, came.operation))
        text += fmt::format(", {}", reductions[std::min<size_t>(came.reduction, std::size(reductions) - 1)]);
    if (is_one_of(rooted, came.operation))
        text += fmt::format(", root {}", came.root);
    return text;
}

std::string seconds_in_words(uint64_t ns)
{
    return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

namespace {

constexpr uint64_t place_timeout_ns = 3'000'000'000; // with the helper that says where threads are

using Member = Collectives::Member;
using Stall = Collectives::Stall;

uint64_t ago(uint64_t ns, uint64_t now_ns)
{
    return now_ns - std::min(now_ns, ns);
}

// "; 3 of its 8 ranks are not seen here, ...", where they are not.
std::string of_elsewhere(const Collectives::Of& of)
{
    return of.here < of.ranks ? fmt::format("; {} of its {} ranks are not seen here, and one of them may be missing",
                                            of.ranks - of.here, of.ranks)
                              : std::string();
}

CollectiveVerdict mismatch(Stall stall, uint64_t now_ns)
{
    std::vector<std::pair<std::string, std::vector<unsigned>>> meanings; // in the order of their first ranks
    for (const Member& member : stall.members) {
        const std::string meaning = meaning_in_words(member);
        const auto known = std::ranges::find(meanings, meaning, &decltype(meanings)::value_type::first);
        (known == meanings.end() ? meanings.emplace_back(meaning, std::vector<unsigned>()) : *known)
            .second.push_back(member.rank);
    }
    std::ranges::stable_sort(meanings, std::greater<>(), [](const auto& one) { return one.second.size(); });
    CollectiveVerdict verdict{
        .kind = "mismatch", .stall = std::move(stall), .time_ns = now_ns, .ranks = {}, .text = {}};
    for (auto& [meaning, ranks] : meanings) {
        verdict.text += fmt::format("{} call{} {}", ranks_in_words(ranks), ranks.size() == 1 ? "s" : "", meaning);
        if (&meaning != &meanings.back().first)
            verdict.text += "; ";
        if (&meaning != &meanings.front().first)
            verdict.ranks.insert(verdict.ranks.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(verdict.ranks);
    verdict.stall.since_ns = 0; // nobody waits
    const auto& number = verdict.stall.of.number;
    verdict.text += number ? fmt::format(", as collective {}", *number) : ", as the same collective";
    return verdict;
}

} // namespace

void CollectiveVerdicts::waited(const waited_record& wait)
{
    if (silent_.contains(wait.pid))
        waited_ns_[wait.pid] = wait.end_ns;
}

std::vector<CollectiveVerdict> CollectiveVerdicts::look(Collectives& collectives, uint64_t now_ns)
{
    // What they do is asked for in time, so that it is known then.
    std::vector<Stall> stalls = collectives.stalls(now_ns - std::min(now_ns, limit_ns_ / 2));
    std::set<pid_t> processes;
    std::map<uint32_t, uint64_t> silent = std::exchange(silent_, {}); // before
    for (const Stall& stall : stalls)
        if (stall.kind == Stall::Kind::silent)
            look_at_silent(stall, now_ns, silent);
        else if (stall.kind == Stall::Kind::missing)
            for (const Member& member : stall.members)
                if (!member.has_come)
                    processes.insert(static_cast<pid_t>(member.image.pid));
    idle_looks_.end_round();
    for (const auto& [pid, since_ns] : silent_)
        processes.insert(static_cast<pid_t>(pid));
    std::erase_if(waited_ns_, [this](const auto& item) { return !silent_.contains(item.first); });
    places_.look(processes, now_ns);

    std::vector<CollectiveVerdict> verdicts;
    std::map<uint64_t, Said> said = std::exchange(said_, {});
    for (Stall& stall : stalls) {
        if (stall.kind == Stall::Kind::mismatch) {
            verdicts.push_back(mismatch(std::move(stall), now_ns));
            continue;
        }
        const uint64_t communicator = stall.of.communicator;
        const bool is_missing = stall.kind == Stall::Kind::missing;
        if (ago(stall.since_ns, now_ns) < limit_ns_ || !(is_missing || is_stuck(stall, now_ns)))
            continue;
        if (is_missing && !said.contains(communicator) && !is_known_of(stall) &&
            ago(stall.since_ns, now_ns) < limit_ns_ + place_timeout_ns)
            continue; // at the next look
        CollectiveVerdict verdict = is_missing ? missing(std::move(stall), now_ns) : stuck(std::move(stall), now_ns);
        const Said now{verdict.kind, verdict.stall.since_ns, verdict.ranks};
        const auto before = said.find(communicator);
        said_[communicator] = now;
        if (before == said.end() || before->second != now)
            verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

// Its processes, unless it has been idle for long.
void CollectiveVerdicts::look_at_silent(const Stall& stall, uint64_t now_ns, std::map<uint32_t, uint64_t>& before)
{
    const bool waits = std::ranges::any_of(stall.members, [this](const Member& member) {
        const ThreadPlaces::Place* const place = place_of(member);
        return place && place->is_wait();
    });
    if (!idle_looks_.is_due(stall.of.communicator, stall.since_ns, waits, now_ns))
        return;
    for (const Member& member : stall.members)
        silent_[member.image.pid] = before.try_emplace(member.image.pid, now_ns).first->second;
}

// A thread of one of its ranks has been in the same wait at two looks, and none of the process' waits has returned
// since they are watched. Others are silent because they have nothing to do, or are stopped.
bool CollectiveVerdicts::is_stuck(const Stall& stall, uint64_t now_ns) const
{
    return std::ranges::any_of(stall.members, [&](const Member& member) {
        const uint32_t pid = member.image.pid;
        const auto watched = silent_.find(pid);
        const auto returned = waited_ns_.find(pid);
        const ThreadPlaces::Place* const place = place_of(member);
        return place && place->is_wait() && place->seen >= 2 && watched != silent_.end() && watched->second < now_ns &&
               returned == waited_ns_.end() && suspension_of(member).empty();
    });
}

// What those do that have not come.
bool CollectiveVerdicts::is_known_of(const Stall& stall) const
{
    return std::ranges::all_of(stall.members, [this](const Member& member) {
        return member.has_come || member.ended || member.destroyed ||
               places_.is_known(static_cast<pid_t>(member.image.pid));
    });
}

// Of its threads: the one that calls, or another one that waits or is in a call of NCCL.
const ThreadPlaces::Place* CollectiveVerdicts::place_of(const Member& member) const
{
    const auto& places = places_.of(static_cast<pid_t>(member.image.pid));
    const auto own = places.find(member.tid);
    if (own != places.end())
        return &own->second;
    return places.empty() ? nullptr : &places.begin()->second;
}

// Whether the thread that called the collective is stopped or frozen.
std::string CollectiveVerdicts::suspension_of(const Member& member) const
{
    const uint32_t pid = member.image.pid;
    return suspensions_.of(static_cast<pid_t>(pid), static_cast<pid_t>(member.called ? member.tid : pid));
}

CollectiveVerdict::Doing CollectiveVerdicts::doing(const Member& member, uint64_t now_ns) const
{
    const uint32_t pid = member.image.pid;
    std::string text = fmt::format("rank {} (process {}): ", member.rank, pid);
    CollectiveVerdict::Doing doing{.text = {}, .image = member.image};
    const std::string suspension = suspension_of(member);
    if (member.ended || member.destroyed) {
        text += member.ended ? "its process has ended" : "it has destroyed the communicator";
    } else if (const ThreadPlaces::Place* const place = place_of(member)) {
        text += fmt::format("in {}", place->probe->symbol);
        if (place->seen > 1)
            text += fmt::format(" for {} or longer", seconds_in_words(ago(place->since_ns, now_ns)));
        doing.callers = place->callers;
    } else {
        const uint32_t tid = member.called ? member.tid : pid;
        const std::string state = thread_activity(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
        text += places_.is_known(static_cast<pid_t>(pid)) ? "in no call of NCCL, and in no wait for the device"
                                                          : "what it is in is not known";
        if (!state.empty() && suspension.empty())
            text += fmt::format("; thread {} {}", tid, state);
    }
    if (!suspension.empty())
        text += "; it is " + suspension;
    if (!member.has_come) {
        text += member.called ? fmt::format("; its last collective here was {}, {} ago", member.operation,
                                            seconds_in_words(ago(member.ns, now_ns)))
                              : std::string("; it has made no collective here");
        if (member.elsewhere)
            text += fmt::format("; since then it has called {} of communicator {:016x}", member.operation_elsewhere,
                                *member.elsewhere);
    }
    doing.text = std::move(text);
    return doing;
}

CollectiveVerdict CollectiveVerdicts::missing(Stall stall, uint64_t now_ns) const
{
    std::vector<unsigned> come, others;
    const Member* first = nullptr;
    for (const Member& member : stall.members) {
        (member.has_come ? come : others).push_back(member.rank);
        if (member.has_come && !first)
            first = &member;
    }
    CollectiveVerdict verdict{.kind = "missing", .stall = {}, .time_ns = now_ns, .ranks = others, .text = {}};
    verdict.text =
        fmt::format("{} {} not come to {}, where {} {} for {}", ranks_in_words(others),
                    others.size() == 1 ? "has" : "have", collective_in_words(stall.of, *first), ranks_in_words(come),
                    come.size() == 1 ? "waits" : "wait", seconds_in_words(ago(stall.since_ns, now_ns)));
    for (const Member& member : stall.members)
        if (!member.has_come)
            verdict.doing.push_back(doing(member, now_ns));
    verdict.stall = std::move(stall);
    return verdict;
}

CollectiveVerdict CollectiveVerdicts::stuck(Stall stall, uint64_t now_ns) const
{
    std::vector<unsigned> waiting;
    CollectiveVerdict verdict{.kind = "stuck", .stall = {}, .time_ns = now_ns, .ranks = {}, .text = {}};
    for (const Member& member : stall.members) {
        const ThreadPlaces::Place* const place = place_of(member);
        if (!place || !place->is_wait())
            continue;
        waiting.push_back(member.rank);
        verdict.doing.push_back(doing(member, now_ns));
    }
    verdict.text = fmt::format("all {} ranks here have come to {}, the last one {} ago, and none has gone on: {} {} "
                               "for the device{}",
                               stall.members.size(), collective_in_words(stall.of, stall.members.front()),
                               seconds_in_words(ago(stall.since_ns, now_ns)), ranks_in_words(waiting),
                               waiting.size() == 1 ? "waits" : "wait", of_elsewhere(stall.of));
    verdict.stall = std::move(stall);
    return verdict;
}

namespace {

constexpr int64_t shift_max = 128; // calls that a rank may be ahead when it is first seen
constexpr int64_t waits_to_align = 4;
constexpr double clearly = 0.2, mostly_possible = 0.5; // a wait may be for another stream

} // namespace

std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other)
{
    const auto n = static_cast<int64_t>(one.size()), m = static_cast<int64_t>(other.size());
    const int64_t enough = (std::min(n, m) + 1) / 2;
    struct Fit {
        double unlike, impossible; // shares
        int64_t shift;
        auto operator<=>(const Fit&) const = default;
    };
    std::vector<Fit> fits;
    for (int64_t shift = -shift_max; shift <= shift_max; shift++) {
        int64_t both = 0, unlike = 0, told = 0, impossible = 0;
        for (int64_t i = std::max<int64_t>(0, -shift); i < n && i + shift < m; i++) {
            const Pattern &a = one[static_cast<size_t>(i)], &b = other[static_cast<size_t>(i + shift)];
            both++;
            unlike += a.signature != b.signature;
            told += a.done_ns != Pattern::never || b.done_ns != Pattern::never;
            impossible += b.ns > a.done_ns || a.ns > b.done_ns;
        }
        if (both < enough || told < waits_to_align)
            continue;
        fits.push_back({static_cast<double>(unlike) / static_cast<double>(both),
                        static_cast<double>(impossible) / static_cast<double>(told), shift});
    }
    if (fits.size() < 2)
        return std::nullopt; // there is nothing to hold it against
    const Fit best = *std::ranges::min_element(fits);
    const auto is_as_good = [&best](const Fit& fit) {
        return fit.unlike <= best.unlike + clearly && fit.impossible <= best.impossible + clearly;
    };
    if (best.impossible > mostly_possible || std::ranges::count_if(fits, is_as_good) > 1)
        return std::nullopt;
    return best.shift;
}

} // namespace gpusnoop
