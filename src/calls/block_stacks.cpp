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
    std::map<BlockKey, BlockGroup> groups;
    totals_.drain(
        times, [&](const block_key& key, const ThreadTime& time, const block_count&, const block_count& added) {
            BlockGroup& group = groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                        .image = time.image,
                                        .part = key.part,
                                        .user = key.user,
                                        .kernel = key.kernel}];
            group.who.add(time.image, processes.owner(time.image, time.cgroup));
            group.ns += added.sum;
            group.times += added.times;
        });
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
    totals_.for_each_key([&](const block_key& key) {
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
