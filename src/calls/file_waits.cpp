// SPDX-License-Identifier: Apache-2.0
#include "calls/file_waits.hpp"

#include "calls/blocked_files.hpp"

namespace gpusnoop {

std::map<FileKey, FileGroup> FileWaits::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                              Processes& processes)
{
    std::map<FileKey, FileGroup> groups;
    totals_.drain(times,
                  [&](const file_key& key, const ThreadTime& time, const file_count& now, const block_count& added) {
                      FileGroup& group = groups[{.who = who_key(view.who, processes, time.image, time.tid, time.cgroup),
                                                 .device = key.device,
                                                 .inode = key.inode,
                                                 .file = file_name(now.folder, now.file)}];
                      group.who.add(time.image, processes.owner(time.image, time.cgroup));
                      group.ns += added.ns;
                      group.waits.add(static_cast<unsigned>(key.bucket), added.times);
                  });
    return groups;
}

} // namespace gpusnoop
