// SPDX-License-Identifier: Apache-2.0
// Lines about single collectives (-e). A line is held back until each rank has entered its next collective, because
// until then the rank may still wait for the GPU, and the line contains that wait.
#include "tools/ncclwait/collectives.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t max_pending_lines = 4096; // limit of lines held back, per communicator
// A line is held back until each of its ranks enters its next collective. If a rank's wait for the GPU has already
// returned, the line is not held back for this rank longer than max_wait_ns after the wait.
constexpr uint64_t max_wait_ns = 2'000'000'000;

} // namespace

// Makes a line from the arrivals at the front of the ranks' queues.
void Collectives::add_line(const std::vector<Rank*>& ranks, bool joined)
{
    if (!detail_.lines || detail_.failed)
        return;
    Line line{.ref = ref_of(*ranks.front(), ranks.front()->next), .joined = joined, .ranks = {}};
    for (const Rank* rank : ranks)
        line.ranks.push_back(arrival_at(*rank, rank->queue.front()));
    std::ranges::sort(line.ranks, {}, &RankArrival::rank);
    communicators_.at(ranks.front()->communicator).lines.push_back(std::move(line));
}

// Adds a line for a failed call. Unlike other lines, it is not held back, because it does not show a wait for the GPU.
void Collectives::add_failure(const Rank& rank, const Arrival& arrival, int result)
{
    if (!detail_.lines || !detail_.failed)
        return;
    Line line{.ref = {}, .joined = false, .ranks = {arrival_at(rank, arrival)}, .result = result};
    if (rank.communicator)
        line.ref = ref_of(rank, 0);
    line.ref.number.reset();
    loose_lines_.push_back(std::move(line));
}

// Attributes a wait to the last collective that the rank entered before the wait began.
void Collectives::add_wait(Communicator& communicator, Rank& rank, const waited_record& wait)
{
    const uint64_t wait_ns = wait.end_ns - wait.begin_ns;
    for (auto arrival = rank.queue.rbegin(); arrival != rank.queue.rend(); ++arrival)
        if (arrival->ns <= wait.begin_ns) {
            arrival->wait_ns = std::max(arrival->wait_ns, wait_ns);
            return;
        }
    for (auto line = communicator.lines.rbegin(); line != communicator.lines.rend(); ++line)
        for (RankArrival& arrival : line->ranks)
            if (arrival.rank == static_cast<unsigned>(rank.identity.rank) && arrival.ns <= wait.begin_ns) {
                arrival.wait_ns = std::max(arrival.wait_ns, wait_ns);
                return;
            }
}

// True if no later event can change the line. `line` must be the first pending line of its communicator.
bool Collectives::is_followed(const Communicator& communicator, const Line& line, uint64_t now_ns)
{
    const auto follows = [&](const RankArrival& arrival) {
        const auto is_rank = [&](const auto& other) { return other.rank == arrival.rank; };
        const auto rank = std::ranges::find_if(
            communicator.ranks, [&](const Rank* one) { return one->identity.rank == static_cast<int>(arrival.rank); });
        if (rank == communicator.ranks.end() || (*rank)->left || !(*rank)->queue.empty())
            return true;
        if (arrival.wait_ns && now_ns > arrival.ns + arrival.wait_ns + max_wait_ns)
            return true;
        return std::any_of(std::next(communicator.lines.begin()), communicator.lines.end(),
                           [&](const Line& later) { return std::ranges::any_of(later.ranks, is_rank); });
    };
    return std::ranges::all_of(line.ranks, follows);
}

std::vector<Collectives::Line> Collectives::drain_lines(uint64_t now_ns, bool last)
{
    std::vector<Line> complete = std::exchange(loose_lines_, {});
    for (auto& [number, communicator] : communicators_) {
        std::deque<Line>& lines = communicator.lines;
        while (!lines.empty() &&
               (last || lines.size() > max_pending_lines || is_followed(communicator, lines.front(), now_ns))) {
            complete.push_back(std::move(lines.front()));
            lines.pop_front();
        }
    }
    return complete;
}

} // namespace gpusnoop
