// SPDX-License-Identifier: Apache-2.0
// Single collectives, with what each rank did until its next one: they are told once that is known.
#include "tools/ncclwait/collectives.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t max_pending_lines = 4096;      // of a communicator, that are not told yet
constexpr uint64_t max_wait_ns = 2'000'000'000; // with a rank that has waited for the device, and calls no more

} // namespace

// Of what is at the front of these ranks' queues.
void Collectives::add_line(const std::vector<Rank*>& ranks, bool joined)
{
    if (!asked_.lines || asked_.failed)
        return;
    Line line{.of = of(*ranks.front(), ranks.front()->next), .joined = joined, .ranks = {}};
    for (const Rank* rank : ranks)
        line.ranks.push_back(came(*rank, rank->queue.front()));
    std::ranges::sort(line.ranks, {}, &Came::rank);
    communicators_.at(ranks.front()->communicator).lines.push_back(std::move(line));
}

// Nothing comes behind one that failed.
void Collectives::add_failure(const Rank& rank, const Arrival& arrival, int result)
{
    if (!asked_.lines || !asked_.failed)
        return;
    Line line{.of = {}, .joined = false, .ranks = {came(rank, arrival)}, .result = result};
    if (rank.communicator)
        line.of = of(rank, 0);
    line.of.number.reset();
    loose_lines_.push_back(std::move(line));
}

// To the last collective that the rank came to before it waited.
void Collectives::add_wait(Communicator& communicator, Rank& rank, const waited_record& wait)
{
    const uint64_t wait_ns = wait.end_ns - wait.begin_ns;
    for (auto arrival = rank.queue.rbegin(); arrival != rank.queue.rend(); ++arrival)
        if (arrival->ns <= wait.begin_ns) {
            arrival->wait_ns = std::max(arrival->wait_ns, wait_ns);
            return;
        }
    for (auto line = communicator.lines.rbegin(); line != communicator.lines.rend(); ++line)
        for (Came& came : line->ranks)
            if (came.rank == static_cast<unsigned>(rank.identity.rank) && came.ns <= wait.begin_ns) {
                came.wait_ns = std::max(came.wait_ns, wait_ns);
                return;
            }
}

// line: the first of its communicator.
bool Collectives::is_followed(const Communicator& communicator, const Line& line, uint64_t now_ns)
{
    const auto follows = [&](const Came& came) {
        const auto is_it = [&](const auto& other) { return other.rank == came.rank; };
        const auto rank = std::ranges::find_if(
            communicator.ranks, [&](const Rank* one) { return one->identity.rank == static_cast<int>(came.rank); });
        if (rank == communicator.ranks.end() || (*rank)->gone || !(*rank)->queue.empty())
            return true;
        if (came.wait_ns && now_ns > came.ns + came.wait_ns + max_wait_ns)
            return true;
        return std::any_of(std::next(communicator.lines.begin()), communicator.lines.end(),
                           [&](const Line& later) { return std::ranges::any_of(later.ranks, is_it); });
    };
    return std::ranges::all_of(line.ranks, follows);
}

std::vector<Collectives::Line> Collectives::drain_lines(uint64_t now_ns, bool last)
{
    std::vector<Line> told = std::exchange(loose_lines_, {});
    for (auto& [number, communicator] : communicators_) {
        std::deque<Line>& lines = communicator.lines;
        while (!lines.empty() &&
               (last || lines.size() > max_pending_lines || is_followed(communicator, lines.front(), now_ns))) {
            told.push_back(std::move(lines.front()));
            lines.pop_front();
        }
    }
    return told;
}

} // namespace gpusnoop
