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
constexpr std::string_view reductions[] = {"sum", "product", "max", "min", "average", "custom reduction"};
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

std::string collective_in_words(const Collectives::Ref& ref, const Collectives::RankArrival& arrival)
{
    std::string text(arrival.operation);
    if (arrival.bytes)
        text += fmt::format(" of {}", prose_bytes(*arrival.bytes));
    if (ref.number)
        text += fmt::format(" (collective {})", *ref.number);
    return text;
}

std::string arguments_in_words(const Collectives::RankArrival& arrival)
{
    std::string text = fmt::format("{} of ", arrival.operation);
    if (arrival.elements || arrival.bytes) // ncclAllToAllv has no single number of elements
        text += fmt::format("{} ", arrival.elements);
    text += arrival.type < std::size(types) ? types[arrival.type] : fmt::format("of type {}", arrival.type);
    if (is_one_of(reducing, arrival.operation))
        text += fmt::format(", {}", reductions[std::min<size_t>(arrival.reduction, std::size(reductions) - 1)]);
    if (is_one_of(rooted, arrival.operation))
        text += fmt::format(", root {}", arrival.root);
    return text;
}

std::string seconds_in_words(uint64_t ns)
{
    return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

namespace {

constexpr uint64_t place_timeout_ns =
    3'000'000'000; // how long to wait for the helper that finds the current calls of threads

using Member = Collectives::Member;
using Stall = Collectives::Stall;

uint64_t ago(uint64_t ns, uint64_t now_ns)
{
    return now_ns - std::min(now_ns, ns);
}

// "; 3 of its 8 ranks are not seen on this machine, ..."; empty if all its ranks are seen.
std::string unseen_ranks_text(const Collectives::Ref& ref)
{
    return ref.here < ref.ranks ? fmt::format("; {} of its {} ranks are not seen on this machine, and one of them may "
                                              "not have entered the collective",
                                              ref.ranks - ref.here, ref.ranks)
                                : std::string();
}

CollectiveVerdict mismatch(Stall stall, uint64_t now_ns)
{
    std::vector<std::pair<std::string, std::vector<unsigned>>> meanings; // arguments in words, and the ranks that
                                                                         // passed them
    for (const Member& member : stall.members) {
        const std::string meaning = arguments_in_words(member);
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
    verdict.stall.since_ns = 0; // a mismatch has no waiting time
    const auto& number = verdict.stall.ref.number;
    verdict.text = number ? fmt::format("collective {} differs between ranks: {}", *number, verdict.text)
                          : fmt::format("a collective differs between ranks: {}", verdict.text);
    return verdict;
}

} // namespace

void CollectiveVerdicts::waited(const waited_record& wait)
{
    if (silent_.contains(wait.pid))
        waited_ns_[wait.pid] = wait.end_ns;
}

std::vector<CollectiveVerdict> CollectiveVerdicts::check(Collectives& collectives, uint64_t now_ns)
{
    // Scans begin when half of the limit has passed, so that their results are available in time.
    std::vector<Stall> stalls = collectives.stalls(now_ns - std::min(now_ns, limit_ns_ / 2));
    std::set<pid_t> processes;
    std::map<uint32_t, uint64_t> silent = std::exchange(silent_, {}); // silent_ of the previous check
    for (const Stall& stall : stalls)
        if (stall.kind == Stall::Kind::silent)
            watch_silent(stall, now_ns, silent);
        else if (stall.kind == Stall::Kind::missing)
            for (const Member& member : stall.members)
                if (!member.has_entered)
                    processes.insert(static_cast<pid_t>(member.image.pid));
    idle_scans_.end_round();
    for (const auto& [pid, since_ns] : silent_)
        processes.insert(static_cast<pid_t>(pid));
    std::erase_if(waited_ns_, [this](const auto& item) { return !silent_.contains(item.first); });
    places_.scan(processes, now_ns);

    std::vector<CollectiveVerdict> verdicts;
    std::map<uint64_t, Reported> reported = std::exchange(reported_, {});
    for (Stall& stall : stalls) {
        if (stall.kind == Stall::Kind::mismatch) {
            verdicts.push_back(mismatch(std::move(stall), now_ns));
            continue;
        }
        const uint64_t communicator = stall.ref.communicator;
        const bool is_missing = stall.kind == Stall::Kind::missing;
        if (ago(stall.since_ns, now_ns) < limit_ns_ || !(is_missing || is_stuck(stall, now_ns)))
            continue;
        if (is_missing && !reported.contains(communicator) && !is_activity_known(stall) &&
            ago(stall.since_ns, now_ns) < limit_ns_ + place_timeout_ns)
            continue; // retry at the next check
        CollectiveVerdict verdict = is_missing ? missing(std::move(stall), now_ns) : stuck(std::move(stall), now_ns);
        const Reported now{verdict.kind, verdict.stall.since_ns, verdict.ranks};
        const auto before = reported.find(communicator);
        reported_[communicator] = now;
        if (before == reported.end() || before->second != now)
            verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

// Watches the processes of a silent communicator, unless its scans are paused (IdleScans).
void CollectiveVerdicts::watch_silent(const Stall& stall, uint64_t now_ns, std::map<uint32_t, uint64_t>& before)
{
    const bool waits = std::ranges::any_of(stall.members, [this](const Member& member) {
        const ThreadPlaces::Place* const place = place_of(member);
        return place && place->is_wait();
    });
    if (!idle_scans_.is_due(stall.ref.communicator, stall.since_ns, waits, now_ns))
        return;
    for (const Member& member : stall.members)
        silent_[member.image.pid] = before.try_emplace(member.image.pid, now_ns).first->second;
}

// A communicator is stuck if two scans found a thread of one rank in the same wait, and no wait of that process has
// returned since the process was first watched. Otherwise, its processes are merely idle or stopped.
bool CollectiveVerdicts::is_stuck(const Stall& stall, uint64_t now_ns) const
{
    return std::ranges::any_of(stall.members, [&](const Member& member) {
        const uint32_t pid = member.image.pid;
        const auto watched = silent_.find(pid);
        const auto returned = waited_ns_.find(pid);
        const ThreadPlaces::Place* const place = place_of(member);
        return place && place->is_wait() && place->scans >= 2 && watched != silent_.end() && watched->second < now_ns &&
               returned == waited_ns_.end() && suspension_of(member).empty();
    });
}

// True if the activity of all missing ranks is known.
bool CollectiveVerdicts::is_activity_known(const Stall& stall) const
{
    return std::ranges::all_of(stall.members, [this](const Member& member) {
        return member.has_entered || member.exited || member.destroyed ||
               places_.is_known(static_cast<pid_t>(member.image.pid));
    });
}

// Returns the current NCCL call or GPU wait of the thread that called the collective. If that thread is in neither,
// returns the call or wait of another thread of the process; null if there is none.
const ThreadPlaces::Place* CollectiveVerdicts::place_of(const Member& member) const
{
    const auto& places = places_.of(static_cast<pid_t>(member.image.pid));
    const auto own = places.find(member.tid);
    if (own != places.end())
        return &own->second;
    return places.empty() ? nullptr : &places.begin()->second;
}

// Explains why the thread that called the collective is stopped or frozen; empty if it is neither.
std::string CollectiveVerdicts::suspension_of(const Member& member) const
{
    const uint32_t pid = member.image.pid;
    return suspensions_.of(static_cast<pid_t>(pid), static_cast<pid_t>(member.called ? member.tid : pid));
}

CollectiveVerdict::Activity CollectiveVerdicts::activity_of(const Member& member, uint64_t now_ns) const
{
    const uint32_t pid = member.image.pid;
    std::string text = fmt::format("rank {} (process {}): ", member.rank, pid);
    CollectiveVerdict::Activity activity{.text = {}, .image = member.image};
    const std::string suspension = suspension_of(member);
    if (member.exited || member.destroyed) {
        text += member.exited ? "its process has exited" : "it has destroyed the communicator";
    } else if (const ThreadPlaces::Place* const place = place_of(member)) {
        text += fmt::format("in {}", place->probe->symbol);
        if (place->scans > 1)
            text += fmt::format(" for at least {}", seconds_in_words(ago(place->since_ns, now_ns)));
        activity.callers = place->callers;
    } else {
        const uint32_t tid = member.called ? member.tid : pid;
        const std::string state = thread_activity(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
        text += places_.is_known(static_cast<pid_t>(pid)) ? "not in an NCCL call, and not waiting for the GPU"
                                                          : "its current call is not known";
        if (!state.empty() && suspension.empty())
            text += fmt::format("; thread {} {}", tid, state);
    }
    if (!suspension.empty())
        text += "; it is " + suspension;
    if (!member.has_entered) {
        text += member.called ? fmt::format("; its last collective in this communicator was {}, {} ago",
                                            member.operation, seconds_in_words(ago(member.ns, now_ns)))
                              : std::string("; it has entered no collective of this communicator");
        if (member.elsewhere)
            text += fmt::format("; since then it has entered {} of communicator {:016x}", member.operation_elsewhere,
                                *member.elsewhere);
    }
    activity.text = std::move(text);
    return activity;
}

CollectiveVerdict CollectiveVerdicts::missing(Stall stall, uint64_t now_ns) const
{
    std::vector<unsigned> entered, others;
    const Member* first = nullptr;
    for (const Member& member : stall.members) {
        (member.has_entered ? entered : others).push_back(member.rank);
        if (member.has_entered && !first)
            first = &member;
    }
    CollectiveVerdict verdict{.kind = "missing", .stall = {}, .time_ns = now_ns, .ranks = others, .text = {}};
    verdict.text = fmt::format("{} {} not entered {}; {} {} been waiting for {}", ranks_in_words(others),
                               others.size() == 1 ? "has" : "have", collective_in_words(stall.ref, *first),
                               ranks_in_words(entered), entered.size() == 1 ? "has" : "have",
                               seconds_in_words(ago(stall.since_ns, now_ns)));
    for (const Member& member : stall.members)
        if (!member.has_entered)
            verdict.activities.push_back(activity_of(member, now_ns));
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
        verdict.activities.push_back(activity_of(member, now_ns));
    }
    verdict.text = fmt::format("all {} ranks on this machine have entered {}, the last one {} ago, and none has "
                               "continued: {} {} waiting for the GPU{}",
                               stall.members.size(), collective_in_words(stall.ref, stall.members.front()),
                               seconds_in_words(ago(stall.since_ns, now_ns)), ranks_in_words(waiting),
                               waiting.size() == 1 ? "is" : "are", unseen_ranks_text(stall.ref));
    verdict.stall = std::move(stall);
    return verdict;
}

namespace {

constexpr int64_t shift_max = 128; // ranks more than this many calls apart when tracing begins cannot be aligned
constexpr int64_t waits_to_align = 4;
// A shift s pairs call i of one rank with call i + s of the other. A pair is impossible if one rank's wait for the call
// returned before the other rank made the call. Even the correct shift has such pairs, because some waits are for other
// streams. The best shift has the lowest fraction of pairs with unlike calls and, among equals, the lowest fraction of
// impossible pairs. It is returned only if, for every other shift, one of these fractions is higher by more than
// min_margin. Its own fraction of impossible pairs must not exceed max_impossible.
constexpr double min_margin = 0.2, max_impossible = 0.5;

} // namespace

std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other)
{
    const auto n = static_cast<int64_t>(one.size()), m = static_cast<int64_t>(other.size());
    const int64_t enough = (std::min(n, m) + 1) / 2;
    struct Fit {
        double unlike;     // fraction of pairs with different signatures
        double impossible; // fraction of impossible pairs, of the pairs in which a rank's wait is known
        int64_t shift;
        auto operator<=>(const Fit&) const = default;
    };
    std::vector<Fit> fits;
    for (int64_t shift = -shift_max; shift <= shift_max; shift++) {
        int64_t both = 0, unlike = 0, with_wait = 0, impossible = 0;
        for (int64_t i = std::max<int64_t>(0, -shift); i < n && i + shift < m; i++) {
            const Pattern &a = one[static_cast<size_t>(i)], &b = other[static_cast<size_t>(i + shift)];
            both++;
            unlike += a.signature != b.signature;
            with_wait += a.done_ns != Pattern::never || b.done_ns != Pattern::never;
            impossible += b.ns > a.done_ns || a.ns > b.done_ns;
        }
        if (both < enough || with_wait < waits_to_align)
            continue;
        fits.push_back({static_cast<double>(unlike) / static_cast<double>(both),
                        static_cast<double>(impossible) / static_cast<double>(with_wait), shift});
    }
    if (fits.size() < 2)
        return std::nullopt; // there is no alternative to compare with
    const Fit best = *std::ranges::min_element(fits);
    const auto is_as_good = [&best](const Fit& fit) {
        return fit.unlike <= best.unlike + min_margin && fit.impossible <= best.impossible + min_margin;
    };
    if (best.impossible > max_impossible || std::ranges::count_if(fits, is_as_good) > 1)
        return std::nullopt;
    return best.shift;
}

} // namespace gpusnoop
