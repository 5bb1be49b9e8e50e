// SPDX-License-Identifier: Apache-2.0
// Blocked time of CUDA threads by stack and by file, in totals since the last report.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/gap.h"
#include "bpf/shared/thread_time.h"
#include "names/code_places.hpp"
#include "names/kernel_files.hpp"
#include "names/user_stacks.hpp"
#include "proc/process.hpp"
#include "rows/histogram.hpp"
#include "rows/thread_times.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusnoop {

// Reads one of the kernel side's tables of blocked periods. Key::place identifies a thread (ThreadTime::place); Count
// has the number of periods and their total time.
template<class Key, class Count>
class BlockTotals {
    static_assert(std::has_unique_object_representations_v<Key>); // keys are compared as bytes

public:
    explicit BlockTotals(int fd) : table_(fd) {}

    // Calls each(key, thread, count, increase since the last drain) for the threads in `times`, then forgets exited
    // threads.
    template<class Each>
    void drain(const std::vector<ThreadTime>& times, Each&& each)
    {
        const auto threads = by_place(times);
        std::vector<Key> ended;
        table_.for_each([&](const Key& key, std::span<const Count> counts) {
            const auto thread = threads.find(key.place);
            if (thread == threads.end())
                return; // the next report will include this thread
            if (thread->second->ended)
                ended.push_back(key);
            const Count& now = counts.front();
            block_count& previous = previous_[key];
            if (now.times == previous.times)
                return;
            each(key, *thread->second, now, block_count{now.sum - previous.sum, now.times - previous.times});
            previous = {now.sum, now.times};
        });
        for (const Key& key : ended) {
            previous_.erase(key);
            table_.erase(key);
        }
    }
    template<class Each>
    void for_each_key(Each&& each)
    {
        table_.for_each([&](const Key& key, std::span<const Count>) { each(key); });
    }

private:
    struct ByBytes {
        bool operator()(const Key& a, const Key& b) const { return memcmp(&a, &b, sizeof(Key)) < 0; }
    };

    HashTable<Key, Count> table_;
    std::map<Key, block_count, ByBytes> previous_;
};

// Key of a row that sums blocked periods outside of CUDA calls.
struct BlockKey {
    WhoKey who;
    uint32_t part = 0; // reason for blocking
    int32_t stack = 0; // id that is valid within this report
    auto operator<=>(const BlockKey&) const = default;
};

struct BlockGroup {
    WhoSeen who;
    uint64_t ns = 0;
    uint64_t times = 0;
};

class BlockStacks {
public:
    BlockStacks(int counts_fd, const UserStacks::Kernel& kernel, WaitBudget* waits = nullptr) // waits: see class Reader
        : totals_(counts_fd), stacks_fd_(kernel.stacks), users_(kernel, {}, waits)
    {}
    BlockStacks(const BlockStacks&) = delete;

    // Returns the blocked periods that ended since the last drain, for the threads in `times`. Forgets exited threads.
    std::map<BlockKey, BlockGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);
    const Frames& frames(const BlockKey& key) const { return places_.frames(key.stack); }
    // Returns the frames of a kernel stack, followed by those of a user stack. A negative id means an unknown stack.
    Frames frames(const ImageId& image, int32_t user, int32_t kernel);
    // Requests and receives function names. Call this regularly.
    void tick(const ThreadTimes& times);
    void forget(const std::vector<ImageId>& images);
    UserStacks& of_users() { return users_; }

private:
    BlockTotals<block_key, block_count> totals_;
    int stacks_fd_;
    UserStacks users_;
    CodePlaces places_{CodePlaces::By::stack,
                       {.frames = [this](const ImageId& image, int32_t user,
                                         uint64_t kernel) { return frames(image, user, static_cast<int32_t>(kernel)); },
                        .place = {}}};          // the stacks that the last drain() returned
    std::optional<KernelSymbols> kernel_names_; // loaded when first needed
};

// Returns "folder/file", as recorded by the kernel side; empty if the file is not known.
std::string file_name(const char (&folder)[FOLDER_NAME], const char (&file)[FILE_NAME]);

// Files that caused a gap, as "folder/file", or empty if not known. Element 0 is the file that the thread waited for in
// the gap's longest blocked period; element i is the file that the i-th waker waited for.
using GapFiles = std::array<std::string, WAKERS + 1>;

// Determines which files a gap's threads waited for (GapFiles).
class BlockedFiles {
public:
    GapFiles of(const gap_record& gap);
    // Call this once a second. Drops the mappings read so far.
    void tick()
    {
        mappings_.clear();
        reads_ = 0;
    }

private:
    std::string file_of(const waker& waker, uint32_t pid);
    std::string mapped_at(uint32_t pid, uint64_t address);

    std::map<uint32_t, std::vector<Mapping>> mappings_; // mappings read since the last tick(), by pid
    size_t reads_ = 0;
};

// Key of a row of --files: a file on which CUDA threads blocked in reads, writes or page faults.
struct FileKey {
    WhoKey who;
    uint64_t device = 0, inode = 0; // both 0: not known
    std::string file;               // "folder/file"; empty: not known
    auto operator<=>(const FileKey&) const = default;
};

struct FileGroup {
    WhoSeen who;
    uint64_t ns = 0;
    Histogram waits;                            // durations in ns
    uint64_t read_bytes = 0, written_bytes = 0; // disk I/O that the threads issued
};

class FileWaits {
public:
    explicit FileWaits(int counts_fd) : totals_(counts_fd) {}

    // Returns the waits that ended since the last drain, for the threads in `times`. Forgets exited threads.
    std::map<FileKey, FileGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                       Processes& processes);

private:
    BlockTotals<file_key, file_count> totals_;
};

} // namespace gpusnoop
