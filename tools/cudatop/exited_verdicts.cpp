// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/exited_verdicts.hpp"

#include <algorithm>
#include <utility>

namespace gpusnoop::cudatop {
namespace {

constexpr size_t lines_max = 1000;

} // namespace

void ExitedVerdicts::add(std::span<const Verdict* const> verdicts, const Frames& frames)
{
    for (const Verdict* verdict : verdicts) {
        if (verdict->rule->of_group)
            loops_.insert(verdict->group);
        if (verdict->exited)
            lines_.push_back({*verdict, frames(*verdict)});
    }
    fold();
    for (; lines_.size() > lines_max; dropped_++)
        lines_.pop_front();
}

// Keeps the last line of each rule in each loop.
void ExitedVerdicts::fold()
{
    std::set<std::pair<uint64_t, const Rule*>> seen;
    std::deque<WhyLine> kept;
    for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
        const Verdict& of = line->verdict;
        if (!loops_.contains(of.group) || seen.emplace(of.group, of.rule).second)
            kept.push_front(std::move(*line));
    }
    lines_ = std::move(kept);
}

std::vector<WhyLine> ExitedVerdicts::with(std::span<const Verdict* const> of_last_interval, const Frames& frames)
{
    for (const Verdict* verdict : of_last_interval) {
        if (verdict->rule->of_group)
            loops_.insert(verdict->group);
        lines_.push_back({*verdict, frames(*verdict)});
    }
    fold();
    std::vector<WhyLine> all(std::make_move_iterator(lines_.begin()), std::make_move_iterator(lines_.end()));
    lines_.clear();
    std::ranges::stable_sort(all, comes_before, &WhyLine::verdict);
    return all;
}

} // namespace gpusnoop::cudatop
