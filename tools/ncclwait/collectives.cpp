// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/collectives.hpp"

#include "tools/ncclwait/collective_verdicts.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t arrivals_max = 1 << 16;     // limit of queued arrivals per rank
constexpr size_t all_arrivals_max = 1 << 21; // limit of queued arrivals in all ranks together
constexpr size_t group_calls_max = 1 << 12;
constexpr size_t max_rank_callers = 64; // limit of calling threads recorded per rank
constexpr size_t pattern_calls = 512;   // number of calls compared to align ranks
// Number of calls per rank to collect before aligning. Later, from the third join() after the last new rank on, one
// queued call per rank suffices, because a job that makes few calls would otherwise remain unaligned.
constexpr size_t calls_to_align = 16;
constexpr int64_t unknown_position = int64_t{1} << 40; // number of the first queued call of a rank that must be aligned

} // namespace

uint16_t Collectives::number_of_operation(std::string_view name)
{
    const auto found = std::ranges::find(operations_, name);
    const auto number = static_cast<uint16_t>(found - operations_.begin());
    if (found == operations_.end())
        operations_.push_back(name);
    return number;
}

uint16_t Collectives::operation_of_call(const collective_call& call)
{
    if (call.asynchronous)
        return number_of_operation("AsyncError");
    const auto [known, is_new] = operation_of_row_.try_emplace(call.row, 0);
    if (is_new)
        known->second = number_of_operation(operation_of(probes_[call.row - 1].symbol));
    return known->second;
}

Collectives::Rank* Collectives::find_rank(uint32_t number)
{
    const auto found = ranks_.find(number);
    return found == ranks_.end() ? nullptr : found->second.get();
}

std::optional<ImageId> Collectives::image_of(uint32_t comm) const
{
    const auto found = ranks_.find(comm);
    return found == ranks_.end() ? std::nullopt : std::optional(found->second->image);
}

void Collectives::learn(const comm_record& record)
{
    std::unique_ptr<Rank>& slot = ranks_[record.number];
    if (!slot)
        slot = std::make_unique<Rank>();
    Rank& rank = *slot;
    rank.number = record.number;
    rank.image = record.image;
    rank.made = record.made;
    if (!record.identity.ranks || rank.communicator)
        return;
    rank.identity = record.identity;
    rank.in_step = rank.made;
    rank.next = rank.made ? 0 : unknown_position;
    Communicator& communicator = communicator_of(rank);
    communicator.ranks.push_back(&rank);
    communicator.rounds = 0;
}

// Finds or adds the communicator of a rank. Communicators of two jobs may have the same hash. A communicator belongs to
// another job if it already has this rank number, or a different number of ranks.
Collectives::Communicator& Collectives::communicator_of(Rank& rank)
{
    for (auto& [number, one] : communicators_) {
        const bool taken = std::ranges::any_of(one.ranks, [&](const Rank* other) {
            return other->identity.ranks != rank.identity.ranks || other->identity.rank == rank.identity.rank;
        });
        if (one.hash == rank.identity.hash && !taken) {
            rank.communicator = number;
            return one;
        }
    }
    rank.communicator = ++communicators_seen_;
    Communicator& added = communicators_[rank.communicator];
    added.hash = rank.identity.hash;
    return added;
}

// Detects a lost call record. The ranks must then be aligned again, because the positions of later calls are unknown.
void Collectives::check_sequence(const collective_call& call)
{
    Rank* const rank = find_rank(call.comm);
    if (!rank)
        return;
    const bool lost = rank->sequence && call.sequence > rank->sequence + 1;
    rank->sequence = call.sequence;
    if (lost && rank->communicator)
        lose_step(communicators_.at(rank->communicator));
}

void Collectives::add(const collective_call& call)
{
    if (call.comm && call.sequence)
        check_sequence(call);
    if (!call.row || call.row > probes_.size())
        return;
    const uint8_t kind = probes_[call.row - 1].row.kind;
    const bool failed = collective_failed(call.result);
    switch (kind) {
    case KIND_GROUP_BEGIN: {
        Group& group = groups_[call.tid];
        group.pid = call.pid;
        group.depth++;
        break;
    }
    case KIND_GROUP_END:
    case KIND_GROUP_DROP:
        group_ends(call, kind == KIND_GROUP_DROP);
        break;
    case KIND_COMM_DESTROY:
        if (Rank* const rank = find_rank(call.comm))
            rank->left = rank->destroyed = true;
        if (failed)
            count(call, 0, call.result);
        break;
    case KIND_COMM_NEW:
    case KIND_COMM_QUERY:
        count(call, 0, call.result);
        break;
    case KIND_COLLECTIVE:
    case KIND_MESSAGE: {
        const auto group = groups_.find(call.tid);
        if (group != groups_.end() && !failed && group->second.calls.size() < group_calls_max)
            group->second.calls.push_back(call);
        else
            count(call, 0, call.result);
        break;
    }
    default:
        break;
    }
}

// Counts the group's calls when the outermost group ends. Either all of them are enqueued, or all of them fail.
void Collectives::group_ends(const collective_call& end, bool dropped)
{
    const auto found = groups_.find(end.tid);
    if (found != groups_.end() && --found->second.depth > 0)
        return;                         // this was the end of a nested group
    std::vector<collective_call> calls; // empty if the group began before tracing
    if (found != groups_.end()) {
        calls = std::move(found->second.calls);
        groups_.erase(found);
    }
    if (dropped || calls.empty()) {
        if (collective_failed(end.result))
            count(end, 0, end.result);
        return;
    }
    const uint64_t each = end.duration_ns / calls.size();
    count(calls.front(), each + end.duration_ns % calls.size(), end.result);
    for (const collective_call& call : std::span(calls).subspan(1))
        count(call, each, end.result);
}

Collectives::Arrival Collectives::arrival_of(const Rank& rank, const collective_call& call)
{
    SumKey key{.operation = operation_of_call(call), .tid = detail_.per_thread ? call.tid : 0};
    const auto& arguments = probes_[call.row - 1].row.args;
    if (detail_.per_stream && operand_present(arguments[ARG_STREAM].word))
        key.stream = call.stream;
    const bool moves = operand_present(arguments[ARG_BYTES].word);
    const auto bytes = moves ? collective_bytes(operations_[key.operation], call.elements, call.data_type,
                                                static_cast<unsigned>(rank.identity.ranks))
                             : std::nullopt;
    if (detail_.per_size && bytes)
        key.octave = static_cast<uint8_t>(std::bit_width(*bytes) + 1);
    return {.ns = call.entry_ns,
            .bytes = bytes.value_or(0),
            .key = key,
            .elements = moves ? call.elements : 0,
            .tid = call.tid,
            .root = call.root,
            .type = call.data_type,
            .reduction = call.reduction,
            .sized = bytes.has_value(),
            .stack = call.stack};
}

void Collectives::count(const collective_call& call, uint64_t more_ns, int result)
{
    Rank* const rank = find_rank(call.comm);
    if (!rank)
        return; // the record of the rank's creation was lost, which is reported elsewhere
    Arrival arrival = arrival_of(*rank, call);
    if (rank->callers.size() < max_rank_callers)
        rank->callers.insert(call.tid);
    if (collective_failed(result)) {
        if (detail_.failed)
            arrival.key.result = result;
        rank->sums[arrival.key].errors++;
        add_failure(*rank, arrival, result);
        return;
    }
    CollectiveSums& sums = rank->sums[arrival.key];
    sums.calls++;
    sums.captured += call.captured;
    sums.enqueue_ns += call.duration_ns + more_ns;
    sums.enqueues.add(histogram_bucket((call.duration_ns + more_ns) / detail_.unit_ns), 1);
    if (arrival.sized) {
        sums.bytes += arrival.bytes;
        sums.sizes.add(histogram_bucket(arrival.bytes), 1);
    } else {
        sums.unsized++;
    }
    if (probes_[call.row - 1].row.kind == KIND_COLLECTIVE && !call.captured && rank->communicator)
        count_arrival(*rank, arrival);
}

void Collectives::count_arrival(Rank& rank, const Arrival& arrival)
{
    rank.latest = arrival;
    if (rank.queue.size() >= arrivals_max)
        lose_step(communicators_.at(rank.communicator));
    rank.queue.push_back(arrival);
}

// Empties the queue without joining its calls. alone: there is no other rank to join with, so the calls do not count as
// unjoined.
void Collectives::leave_unjoined(Rank& rank, bool alone)
{
    for (; !rank.queue.empty(); rank.queue.pop_front(), rank.next++) {
        if (!alone)
            rank.sums[rank.queue.front().key].unjoined++;
        add_line({&rank}, false);
    }
}

// Discards the positions of all ranks, which must then be aligned again.
void Collectives::lose_step(Communicator& communicator)
{
    for (Rank* rank : communicator.ranks) {
        leave_unjoined(*rank);
        rank->in_step = false;
        rank->next = unknown_position;
    }
}

void Collectives::forget(const ImageId& image)
{
    for (auto& [number, rank] : ranks_)
        if (rank->image == image)
            rank->left = true;
    std::erase_if(groups_, [&](const auto& group) { return group.second.pid == image.pid; });
}

// Limits the total size of all queues. A process could otherwise fill memory: it creates many communicators and makes
// calls in only one rank of each, and these calls stay queued.
void Collectives::limit_memory()
{
    size_t waiting = 0;
    for (const auto& [number, rank] : ranks_)
        waiting += rank->queue.size();
    if (waiting > all_arrivals_max)
        for (auto& [number, communicator] : communicators_)
            lose_step(communicator);
}

void Collectives::join(bool last)
{
    limit_memory();
    for (auto& [number, communicator] : communicators_) {
        join(communicator, last || std::ranges::all_of(communicator.ranks, &Rank::left));
        remove_left(communicator);
        communicator.rounds++;
    }
}

void Collectives::join(Communicator& communicator, bool last)
{
    const std::vector<Rank*>& ranks = communicator.ranks;
    if (ranks.empty())
        return;
    // If a rank was added since the last call, wait for the other ranks, whose records may still arrive. The next call
    // joins without the missing ranks, which may be on other machines.
    const bool all = ranks.size() == static_cast<size_t>(ranks.front()->identity.ranks);
    if (!all && !communicator.rounds && !last)
        return;
    communicator.here = std::max(communicator.here, ranks.size());
    if (communicator.here == 1) { // there is no other rank to wait for
        return leave_unjoined(*ranks.front(), true);
    }
    if (ranks.size() == 1)
        return leave_unjoined(*ranks.front());
    if (!align(communicator, last)) {
        communicator.joined = Joined::not_yet;
        if (last)
            std::ranges::for_each(ranks, [this](Rank* rank) { leave_unjoined(*rank); });
        return;
    }
    communicator.joined = communicator.aligned ? Joined::aligned : Joined::exactly;
    const auto has_none = [](const Rank* rank) { return rank->queue.empty(); };
    while (std::ranges::none_of(ranks, has_none)) {
        const int64_t next = (*std::ranges::max_element(ranks, {}, &Rank::next))->next;
        bool together = true;
        for (Rank* rank : ranks)
            for (; rank->next < next && !rank->queue.empty(); rank->next++) {
                rank->sums[rank->queue.front().key].unjoined++;
                add_line({rank}, false);
                rank->queue.pop_front();
                together = false;
            }
        if (together)
            join_front(communicator);
    }
    if (last)
        std::ranges::for_each(ranks, [this](Rank* rank) { leave_unjoined(*rank); });
}

void Collectives::join_front(Communicator& communicator)
{
    const std::vector<Rank*>& ranks = communicator.ranks;
    compare_front(communicator);
    add_line(ranks, true);
    uint64_t first = UINT64_MAX, before = 0, late = 0; // times of the first, second-last and last arrival
    Rank* last = nullptr;
    for (Rank* rank : ranks) {
        const uint64_t ns = rank->queue.front().ns;
        first = std::min(first, ns);
        if (last && ns <= late) {
            before = std::max(before, ns);
            continue;
        }
        before = std::exchange(late, ns);
        last = rank;
    }
    for (Rank* rank : ranks) {
        CollectiveSums& sums = rank->sums[rank->queue.front().key];
        sums.joined++;
        sums.wait_ns += late - rank->queue.front().ns;
        if (rank == last) {
            sums.last++;
            sums.late_ns += late - before;
            sums.skews.add(histogram_bucket((late - first) / detail_.unit_ns), 1);
            if (const int32_t stack = rank->queue.front().stack; stack >= 0)
                sums.late_from[stack] += late - before;
        }
        rank->queue.pop_front();
        rank->next++;
    }
}

// Aligns the ranks. Returns false if too little is known about a rank.
bool Collectives::align(Communicator& communicator, bool last)
{
    const auto needs_alignment = [](const Rank* rank) { return !rank->in_step; };
    if (std::ranges::none_of(communicator.ranks, needs_alignment))
        return true;
    const auto few = [&](const Rank* rank) {
        return rank->queue.empty() || (rank->queue.size() < calls_to_align && communicator.rounds < 2 && !last);
    };
    if (std::ranges::any_of(communicator.ranks, few))
        return false;
    const auto pattern = [](const Rank& rank) {
        std::vector<Pattern> calls;
        for (size_t i = 0; i < std::min(rank.queue.size(), pattern_calls); i++) {
            const Arrival& arrival = rank.queue[i];
            calls.push_back({arrival.ns, arrival.done_ns, arrival.bytes << 8 | arrival.key.operation});
        }
        return calls;
    };
    // If a rank is already in step, align the others with it.
    const auto steady = std::ranges::find(communicator.ranks, true, &Rank::in_step);
    Rank& model = steady == communicator.ranks.end() ? *communicator.ranks.front() : **steady;
    const std::vector<Pattern> of_model = pattern(model);
    std::map<Rank*, int64_t> shifts{{&model, 0}};
    for (Rank* rank : communicator.ranks) {
        if (rank->in_step || rank == &model)
            continue;
        const auto shift = shift_between(pattern(*rank), of_model);
        if (!shift)
            return retry_later(communicator);
        shifts[rank] = *shift;
    }
    for (const auto& [rank, shift] : shifts) {
        rank->next = model.next + shift;
        rank->in_step = true;
    }
    communicator.aligned = true;
    return true;
}

// Keeps the queued calls for a later attempt, because more calls may allow an alignment. Discards them if there are too
// many. Always returns false, so that align() can return the result.
bool Collectives::retry_later(Communicator& communicator)
{
    if (std::ranges::any_of(communicator.ranks, [](const Rank* rank) { return rank->queue.size() > pattern_calls; }))
        lose_step(communicator);
    return false;
}

bool Collectives::needs_alignment() const
{
    return std::ranges::any_of(communicators_, [](const auto& item) {
        const std::vector<Rank*>& ranks = item.second.ranks;
        return ranks.size() > 1 && !std::ranges::all_of(ranks, &Rank::in_step);
    });
}

void Collectives::waited(const waited_record& wait)
{
    for (auto& [number, rank] : ranks_) {
        if (detail_.lines && rank->image.pid == wait.pid && rank->communicator)
            add_wait(communicators_.at(rank->communicator), *rank, wait);
        if (!rank->latest || rank->latest->tid != wait.tid || rank->in_step)
            continue;
        for (auto arrival = rank->queue.rbegin(); arrival != rank->queue.rend(); ++arrival) {
            if (arrival->done_ns != Pattern::never)
                break;
            if (arrival->ns <= wait.begin_ns)
                arrival->done_ns = wait.end_ns;
        }
    }
}

// Removes ranks that have left, unless other ranks wait for them in a collective.
void Collectives::remove_left(Communicator& communicator)
{
    const auto ended = [](const Rank* rank) { return rank->left && rank->queue.empty(); };
    const auto waits = [](const Rank* rank) { return rank->in_step && !rank->queue.empty(); };
    if (std::ranges::none_of(communicator.ranks, waits))
        std::erase_if(communicator.ranks, ended);
}

std::vector<Caller> Collectives::callers() const
{
    std::vector<Caller> all;
    for (const auto& [number, rank] : ranks_)
        for (const uint32_t tid : rank->callers)
            all.emplace_back(rank->image, tid);
    return all;
}

std::vector<Collectives::Part> Collectives::drain()
{
    std::vector<Part> parts;
    for (auto& [number, rank] : ranks_) {
        const auto found = communicators_.find(rank->communicator);
        const Communicator* const communicator = found == communicators_.end() ? nullptr : &found->second;
        Part part;
        part.image = rank->image;
        part.callers = std::exchange(rank->callers, {});
        if (communicator) {
            part.communicator = found->first;
            part.hash = communicator->hash;
            part.rank = static_cast<unsigned>(rank->identity.rank);
            part.ranks = static_cast<unsigned>(rank->identity.ranks);
            part.device = static_cast<unsigned>(rank->identity.device);
            part.here = static_cast<unsigned>(communicator->here);
            part.joined = communicator->joined;
        }
        for (auto& [key, sums] : rank->sums) {
            part.tid = key.tid;
            part.stream = key.stream;
            part.result = key.result;
            part.operation = operations_[key.operation];
            part.size.reset();
            if (key.octave)
                part.size = key.octave == 1 ? 0 : uint64_t{1} << (key.octave - 2);
            part.sums = std::move(sums);
            parts.push_back(part);
        }
        rank->sums.clear();
    }
    // Deletes ranks that have left, once their communicator no longer lists them: it does so until all its calls are
    // matched.
    std::erase_if(ranks_, [&](const auto& item) {
        const Rank& rank = *item.second;
        const auto found = communicators_.find(rank.communicator);
        return rank.left && (found == communicators_.end() ||
                             std::ranges::find(found->second.ranks, &rank) == found->second.ranks.end());
    });
    std::erase_if(communicators_, [this](auto& item) {
        if (item.second.ranks.empty())
            std::ranges::move(item.second.lines, std::back_inserter(loose_lines_));
        return item.second.ranks.empty();
    });
    for (auto& [number, communicator] : communicators_)
        communicator.here = communicator.ranks.size();
    return parts;
}

} // namespace gpusnoop
