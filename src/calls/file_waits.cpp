// SPDX-License-Identifier: Apache-2.0
#include "calls/file_waits.hpp"

#include "calls/blocked_files.hpp"

#include <span>

namespace gpusnoop {

std::map<FileKey, FileGroup> FileWaits::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                              Processes& processes)
{
    const auto threads = by_place(times);
    std::map<FileKey, FileGroup> groups;
    std::vector<file_key> ended;
    table_.for_each([&](const file_key& key, std::span<const file_count> counts) {
        const auto thread = threads.find(key.place);
        if (thread == threads.end())
            return; // with the next report
        const ThreadTime& time = *thread->second;
        if (time.ended)
            ended.push_back(key);
        const file_count& now = counts.front();
        Told& told = told_[{key.place, key.inode, key.device, key.bucket}];
        if (now.times == told.times)
            return;
        FileGroup& group = groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                   .device = key.device,
                                   .inode = key.inode,
                                   .file = file_name(now.folder, now.file)}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.ns += now.ns - told.ns;
        group.waits.add(static_cast<unsigned>(key.bucket), now.times - told.times);
        told = {now.ns, now.times};
    });
    for (const file_key& key : ended) {
        told_.erase({key.place, key.inode, key.device, key.bucket});
        table_.erase(key);
    }
    return groups;
}

} // namespace gpusnoop
