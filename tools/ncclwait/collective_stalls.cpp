// SPDX-License-Identifier: Apache-2.0
// Detection of communicators that make no progress, by comparing the arrivals of their ranks.
#include "tools/ncclwait/collectives.hpp"

#include <algorithm>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t mismatches_max = 256;
// If ranks were aligned by comparing their calls, a mismatch is reported only after this many matches in a row. Before
// that, the mismatch may just mean that the alignment is wrong.
constexpr uint64_t min_matches = 64;

} // namespace

// number: sequence number of the collective, starting at 0.
Collectives::Ref Collectives::ref_of(const Rank& rank, int64_t number) const
{
    const Communicator& communicator = communicators_.at(rank.communicator);
    Ref ref{.communicator = rank.communicator,
            .hash = communicator.hash,
            .ranks = static_cast<unsigned>(rank.identity.ranks),
            .here = static_cast<unsigned>(std::max(communicator.here, communicator.ranks.size())),
            .joined = communicator.joined};
    if (rank.in_step && rank.made && !communicator.aligned)
        ref.number = static_cast<uint64_t>(number) + 1;
    return ref;
}

Collectives::RankArrival Collectives::arrival_at(const Rank& rank, const Arrival& arrival) const
{
    return {.rank = static_cast<unsigned>(rank.identity.rank),
            .device = static_cast<unsigned>(rank.identity.device),
            .image = rank.image,
            .tid = arrival.tid,
            .ns = arrival.ns,
            .operation = operations_[arrival.key.operation],
            .bytes = arrival.sized ? std::optional(arrival.bytes) : std::nullopt,
            .elements = arrival.elements,
            .root = arrival.root,
            .type = arrival.type,
            .reduction = arrival.reduction,
            .wait_ns = arrival.wait_ns,
            .stack = arrival.stack};
}

// arrival: the rank's arrival at the stalled collective; null if the rank has not entered it.
Collectives::Member Collectives::member(const Rank& rank, const Arrival* arrival) const
{
    Member member;
    const Arrival* const last = arrival || !rank.latest ? arrival : &*rank.latest;
    if (last)
        static_cast<RankArrival&>(member) = arrival_at(rank, *last);
    member.rank = static_cast<unsigned>(rank.identity.rank);
    member.device = static_cast<unsigned>(rank.identity.device);
    member.image = rank.image;
    member.has_entered = arrival;
    member.called = last;
    member.exited = rank.left && !rank.destroyed;
    member.destroyed = rank.destroyed;
    uint64_t since_ns = member.ns;
    for (const auto& [number, other] : ranks_) {
        const bool is_other = other->image == rank.image && other->communicator != rank.communicator;
        if (arrival || !is_other || !other->communicator || !other->latest || other->latest->ns <= since_ns)
            continue;
        since_ns = other->latest->ns;
        member.elsewhere = other->identity.hash;
        member.operation_elsewhere = operations_[other->latest->key.operation];
    }
    return member;
}

// Compares the arrivals at the fronts of all queues, which belong to the same collective. After a mismatch, no more
// mismatches are reported until the ranks match again.
void Collectives::compare_front(Communicator& communicator)
{
    const std::vector<Rank*>& ranks = communicator.ranks;
    const Arrival& model = ranks.front()->queue.front();
    if (std::ranges::all_of(ranks, [&](const Rank* rank) { return rank->queue.front().is_like(model); })) {
        communicator.matches_in_a_row++;
        communicator.differs = false;
        return;
    }
    const bool trusted = !communicator.aligned || communicator.matches_in_a_row >= min_matches;
    communicator.matches_in_a_row = 0;
    if (std::exchange(communicator.differs, true) || !trusted || mismatches_.size() >= mismatches_max)
        return;
    Stall stall{.kind = Stall::Kind::mismatch,
                .ref = ref_of(*ranks.front(), ranks.front()->next),
                .since_ns = model.ns,
                .members = {}};
    for (const Rank* rank : ranks)
        stall.members.push_back(member(*rank, &rank->queue.front()));
    std::ranges::sort(stall.members, {}, &Member::rank);
    mismatches_.push_back(std::move(stall));
}

std::optional<Collectives::Stall> Collectives::stall_of(const Communicator& communicator, uint64_t before_ns) const
{
    const std::vector<Rank*>& ranks = communicator.ranks;
    const bool is_aligned = communicator.joined == Joined::exactly || communicator.joined == Joined::aligned;
    if (ranks.empty() || (ranks.size() > 1 && !is_aligned))
        return std::nullopt;
    const auto next_of = [](const Rank* rank) { return rank->next + static_cast<int64_t>(rank->queue.size()); };
    const int64_t next = next_of(*std::ranges::min_element(ranks, {}, next_of));
    Stall stall;
    stall.since_ns = 0;
    bool all_called = true;
    for (const Rank* rank : ranks) {
        const Arrival* arrival = nullptr;
        if (next_of(rank) > next)
            arrival = &rank->queue[static_cast<size_t>(std::max<int64_t>(0, next - rank->next))];
        all_called &= rank->latest.has_value() && !rank->left;
        if (arrival && (stall.kind != Stall::Kind::missing || arrival->ns < stall.since_ns)) {
            stall.kind = Stall::Kind::missing;
            stall.since_ns = arrival->ns;
        } else if (rank->latest && stall.kind == Stall::Kind::silent) {
            stall.since_ns = std::max(stall.since_ns, rank->latest->ns);
        }
        stall.members.push_back(member(*rank, arrival));
    }
    const bool silent = stall.kind == Stall::Kind::silent;
    if (stall.since_ns > before_ns || (silent && !all_called))
        return std::nullopt;
    stall.ref = ref_of(*ranks.front(), silent ? next - 1 : next);
    if (silent)
        for (Member& one : stall.members)
            one.has_entered = true;
    std::ranges::sort(stall.members, {}, &Member::rank);
    return stall;
}

std::vector<Collectives::Stall> Collectives::stalls(uint64_t before_ns)
{
    std::vector<Stall> all = std::exchange(mismatches_, {});
    for (const auto& [number, communicator] : communicators_)
        if (auto stall = stall_of(communicator, before_ns))
            all.push_back(std::move(*stall));
    return all;
}

} // namespace gpusnoop
