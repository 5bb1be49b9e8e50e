// SPDX-License-Identifier: Apache-2.0
#include "rows/block_stacks.hpp"

#include "base/bpf_map.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace gpusnoop {

std::map<BlockKey, BlockGroup> BlockStacks::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                                  Processes& processes)
{
    std::map<BlockKey, BlockGroup> groups;
    places_.clear();
    totals_.drain(times,
                  [&](const block_key& key, const ThreadTime& time, const block_count&, const block_count& added) {
                      BlockGroup& group =
                          groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                  .part = key.part,
                                  .stack = places_.number_of(time.image, key.user, static_cast<uint32_t>(key.kernel))}];
                      group.who.add(time.image, processes.owner(time.image, time.cgroup));
                      group.ns += added.sum;
                      group.times += added.times;
                  });
    return groups;
}

Frames BlockStacks::frames(const ImageId& image, int32_t user, int32_t kernel)
{
    if (!kernel_names_)
        kernel_names_ = KernelSymbols::of_this_kernel();
    Frames all(kernel_names_->frames(stack_trace(stacks_fd_, kernel)));
    Frames users = users_.frames(image, user, 0);
    if (!users.parts.empty()) // of the same number as lines
        for (const std::string& line : all.lines)
            all.parts.push_back(
                {.language = "kernel", .function = line.substr(0, line.rfind("+0x")), .file = {}, .line = {}});
    std::ranges::move(users.lines, std::back_inserter(all.lines));
    std::ranges::move(users.parts, std::back_inserter(all.parts));
    return all;
}

void BlockStacks::tick(const ThreadTimes& times)
{
    users_.tick();
    totals_.for_each_key([&](const block_key& key) {
        if (const auto image = times.image_of(key.place))
            users_.expect(*image, key.user);
    });
}

void BlockStacks::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images) {
        users_.ended(static_cast<pid_t>(image.pid));
        users_.forget(image);
    }
}

} // namespace gpusnoop
