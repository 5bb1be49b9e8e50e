// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/since_opened.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace gpusnoop::cudatop {
namespace {

int64_t held_by(const std::set<ImageId>& images, const Holdings& holdings)
{
    int64_t bytes = 0;
    for (const auto& [row, amount] : holdings.now())
        if (images.contains(row.image) && is_memory(row.memory.holding))
            bytes += amount.bytes;
    return bytes;
}

} // namespace

void SinceOpened::restart()
{
    images_.clear();
    calls_.clear();
    waits_.clear();
    seconds_ = 0;
}

void SinceOpened::follow(const std::set<ImageId>& images, const Holdings& holdings)
{
    if (images_.empty())
        held_bytes_ = held_by(images, holdings);
    images_ = images;
}

int64_t SinceOpened::grown_bytes(const Holdings& holdings) const
{
    return held_by(images_, holdings) - held_bytes_;
}

void SinceOpened::add(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits, double seconds)
{
    if (images_.empty())
        return;
    seconds_ += seconds;
    for (const CallDelta& delta : calls)
        if (images_.contains(delta.key.image))
            calls_.add(delta);
    for (auto& [key, sum] : waits_)
        sum.waiting = false; // unless it is told again
    for (const Waiting::Part& part : waits) {
        if (!images_.contains(part.key.image))
            continue;
        const auto [found, is_new] = waits_.try_emplace(part.key, part);
        if (is_new)
            continue;
        Waiting::Part& sum = found->second;
        sum.elapsed_ns = std::max(sum.elapsed_ns, part.elapsed_ns);
        sum.new_ns += part.new_ns;
        sum.waiting = part.waiting;
        sum.ended |= part.ended;
        sum.earlier |= part.earlier;
    }
}

std::vector<Waiting::Part> SinceOpened::waits() const
{
    std::vector<Waiting::Part> all;
    std::ranges::copy(std::views::values(waits_), std::back_inserter(all));
    return all;
}

std::set<int32_t> SinceOpened::stacks() const
{
    std::set<int32_t> all;
    for (const CallDelta& delta : calls())
        all.insert(delta.key.stack);
    for (const auto& [key, sum] : waits_)
        all.insert(key.stack);
    return all;
}

} // namespace gpusnoop::cudatop
