// SPDX-License-Identifier: Apache-2.0
#include "calls/block_stacks.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <iterator>
#include <span>

namespace gpusnoop {

std::map<BlockKey, BlockGroup> BlockStacks::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                                  Processes& processes)
{
    const auto threads = by_place(times);
    std::map<BlockKey, BlockGroup> groups;
    std::vector<block_key> ended;
    table_.for_each([&](const block_key& key, std::span<const block_count> counts) {
        const auto thread = threads.find(key.place);
        if (thread == threads.end())
            return; // with the next report
        const ThreadTime& time = *thread->second;
        if (time.ended)
            ended.push_back(key);
        const block_count& now = counts.front();
        block_count& told = told_[{key.place, key.part, key.user, key.kernel}];
        if (now.times == told.times)
            return;
        BlockGroup& group = groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                    .image = time.image,
                                    .part = key.part,
                                    .user = key.user,
                                    .kernel = key.kernel}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.ns += now.ns - told.ns;
        group.times += now.times - told.times;
        told = now;
    });
    for (const block_key& key : ended) {
        told_.erase({key.place, key.part, key.user, key.kernel});
        table_.erase(key);
    }
    return groups;
}

std::vector<std::string> BlockStacks::frames(const BlockKey& key)
{
    if (!kernel_names_)
        kernel_names_ = KernelSymbols::of_this_kernel();
    std::vector<std::string> all = kernel_names_->frames(addresses(key.kernel));
    std::ranges::move(names_.frames(key.image, addresses(key.user)), std::back_inserter(all));
    return all;
}

void BlockStacks::tick(const ThreadTimes& times)
{
    names_.tick();
    table_.for_each([&](const block_key& key, std::span<const block_count>) {
        if (const auto image = times.image_of(key.place); image && named_.emplace(*image, key.user).second)
            names_.frames(*image, addresses(key.user));
    });
}

void BlockStacks::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images) {
        names_.forget(image);
        std::erase_if(named_, [&](const auto& known) { return known.first == image; });
    }
}

// Innermost first; empty where it is not known.
std::vector<uint64_t> BlockStacks::addresses(int32_t stack) const
{
    std::array<uint64_t, BLOCK_FRAMES> frames{};
    if (stack < 0 || bpf_map_lookup_elem(stacks_fd_, &stack, frames.data()) != 0)
        return {};
    return {frames.begin(), std::ranges::find(frames, uint64_t{0})};
}

} // namespace gpusnoop
