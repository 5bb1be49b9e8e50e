// SPDX-License-Identifier: Apache-2.0
// For how long threads that call have waited for which files, in reads and writes and page faults that blocked, and
// what disks were asked for.
#pragma once

#include "rows/block_totals.hpp"
#include "rows/histogram.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpusnoop {

struct FileKey {
    WhoKey who;
    uint64_t device = 0, inode = 0; // both 0: not known
    std::string file;               // "folder/file"; empty: not known
    auto operator<=>(const FileKey&) const = default;
};

struct FileGroup {
    WhoSeen who;
    uint64_t ns = 0;
    Histogram waits;                            // ns each
    uint64_t read_bytes = 0, written_bytes = 0; // by disks
};

class FileWaits {
public:
    explicit FileWaits(int counts_fd) : totals_(counts_fd) {}

    // What has ended since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<FileKey, FileGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                       Processes& processes);

private:
    BlockTotals<file_key, file_count> totals_;
};

} // namespace gpusnoop
