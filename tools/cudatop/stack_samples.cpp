// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/stack_samples.hpp"

#include "bpf/shared/call.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {

bool StackTable::due()
{
    constexpr uint64_t pause_ns = 30'000'000'000;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - swept_ns_ < pause_ns)
        return false;
    swept_ns_ = now;
    return true;
}

void StackTable::keep(const std::set<int32_t>& stacks) const
{
    std::set<uint32_t> kept;
    for (const int32_t stack : stacks)
        kept.insert(static_cast<uint32_t>(stack & ~STACK_WITHOUT_FIRST));
    std::vector<uint32_t> idle;
    uint32_t id = 0;
    for (const uint32_t* before = nullptr; bpf_map_get_next_key(map_fd_, before, &id) == 0; before = &id)
        if (!kept.contains(id))
            idle.push_back(id);
    for (const uint32_t stack : idle)
        bpf_map_delete_elem(map_fd_, &stack);
}

namespace {

constexpr size_t named_max = 200; // only the most frequent stacks are symbolized
constexpr size_t shown_max = 10;

} // namespace

void StackSamples::add(std::span<const CallDelta> calls)
{
    for (const CallDelta& call : calls)
        if (call.key.stack >= 0)
            counts_[{call.key.image, call.key.stack, call.key.caller}] += call[CALL_COUNT];
}

DetailPart StackSamples::part(std::string_view calls, std::string_view title, const Frames& frames) const
{
    std::vector<std::pair<uint64_t, Stack>> stacks;
    uint64_t samples = 0;
    for (const auto& [stack, count] : counts_) {
        stacks.emplace_back(count, stack);
        samples += count;
    }
    std::ranges::sort(stacks, std::greater());
    std::map<std::vector<std::string>, uint64_t> by_frames;
    for (const auto& [count, stack] : stacks | std::views::take(named_max))
        by_frames[frames(stack.image, stack.stack, stack.caller)] += count;
    std::vector<std::pair<uint64_t, std::vector<std::string>>> rows;
    for (auto& [lines, count] : by_frames)
        rows.emplace_back(count, lines);
    std::ranges::stable_sort(rows, std::greater(), &std::pair<uint64_t, std::vector<std::string>>::first);

    DetailPart part;
    part.title = fmt::format("Sampled stacks of {}{}", calls, title);
    part.columns = {{"SAMPLES", "samples"}, {"SHARE%", "share_percent", Unit::percent, 6}};
    for (auto& [count, lines] : rows | std::views::take(shown_max)) {
        part.rows.push_back({Cell(count), Cell(100.0 * static_cast<double>(count) / static_cast<double>(samples))});
        part.below.push_back(std::move(lines));
    }
    part.lines.push_back(
        fmt::format("{} stacks sampled: all {}, or about 100 per second and thread if there are more", samples, calls));
    return part;
}

} // namespace gpusnoop::cudatop
