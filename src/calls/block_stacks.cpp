// SPDX-License-Identifier: Apache-2.0
#include "calls/block_stacks.hpp"

#include "maps/stack_trace.hpp"

#include <algorithm>
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
    std::vector<std::string> all = kernel_names_->frames(stack_trace(stacks_fd_, key.kernel));
    std::ranges::move(callers_.frames(key.image, key.user), std::back_inserter(all));
    return all;
}

void BlockStacks::tick(const ThreadTimes& times)
{
    callers_.tick();
    table_.for_each([&](const block_key& key, std::span<const block_count>) {
        if (const auto image = times.image_of(key.place))
            callers_.expect(*image, key.user);
    });
}

void BlockStacks::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images)
        callers_.forget(image);
}

} // namespace gpusnoop
