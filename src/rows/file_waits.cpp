// SPDX-License-Identifier: Apache-2.0
#include "rows/file_waits.hpp"

#include "rows/blocked_files.hpp"

namespace gpusnoop {
namespace {

void add(FileGroup& group, uint64_t bucket, const block_count& added)
{
    if (bucket == FILE_READ) {
        group.read_bytes += added.sum;
    } else if (bucket == FILE_WRITTEN) {
        group.written_bytes += added.sum;
    } else {
        group.ns += added.sum;
        group.waits.add(static_cast<unsigned>(bucket), added.times);
    }
}

} // namespace

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
                      add(group, key.bucket, added);
                  });
    return groups;
}

} // namespace gpusnoop
