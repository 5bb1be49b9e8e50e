// SPDX-License-Identifier: Apache-2.0
// Stacks and files at which CUDA threads block: totals since the last report, from tables of the kernel side.
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

// Totals of one kernel table of blocked periods. Key::place identifies a thread (ThreadTime::place); Count has the
// total time and the number of the periods.
template<class Key, class Count>
class BlockTotals {
    static_assert(std::has_unique_object_representations_v<Key>); // keys are compared as bytes

public:
    explicit BlockTotals(int fd) : table_(fd) {}

    // Calls each(key, thread, count, increase since the last drain) for the threads in `times`, then forgets those that
    // have exited.
    template<class Each>
    void drain(const std::vector<ThreadTime>& times, Each&& each)
    {
        const auto threads = by_place(times);
        std::vector<Key> ended;
        table_.for_each([&](const Key& key, std::span<const Count> counts) {
            const auto thread = threads.find(key.place);
            if (thread == threads.end())
                return; // its thread is in the next report
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

// Key of a row of blocked periods outside of CUDA calls.
struct BlockKey {
    WhoKey who;
    uint32_t part = 0; // the reason
    int32_t stack = 0; // number within the report
    auto operator<=>(const BlockKey&) const = default;
};

struct BlockGroup {
    WhoSeen who;
    uint64_t ns = 0;
    uint64_t times = 0;
};

class BlockStacks {
public:
    BlockStacks(int counts_fd, const UserStacks::Kernel& kernel, WaitBudget* waits = nullptr) // see Reader
        : totals_(counts_fd), stacks_fd_(kernel.stacks), users_(kernel, {}, waits)
    {}
    BlockStacks(const BlockStacks&) = delete;

    // Blocked periods that ended since the last call, for the threads in `times`. Forgets threads that have exited.
    std::map<BlockKey, BlockGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);
    const Frames& frames(const BlockKey& key) const { return places_.frames(key.stack); }
    // Frames of two stacks given by their ids (negative: not known), kernel frames first.
    Frames frames(const ImageId& image, int32_t user, int32_t kernel);
    // Requests and receives the names of functions. To be called regularly.
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
                        .place = {}}};          // stacks of the last drain()
    std::optional<KernelSymbols> kernel_names_; // loaded for the first stack
};

// "folder/file" as recorded by the kernel side; empty if not known.
std::string file_name(const char (&folder)[FOLDER_NAME], const char (&file)[FILE_NAME]);

// The file ("folder/file"; empty if not known) that the longest blocked period of a gap waited for, then the file that
// each of the gap's wakers waited for.
using GapFiles = std::array<std::string, WAKERS + 1>;

// Finds the files that threads waited for in the longest blocked period of a gap.
class BlockedFiles {
public:
    GapFiles of(const gap_record& gap);
    // To be called once a second: drops the mappings read so far.
    void tick()
    {
        mappings_.clear();
        reads_ = 0;
    }

private:
    std::string file_of(const waker& waker, uint32_t pid);
    std::string mapped_at(uint32_t pid, uint64_t address);

    std::map<uint32_t, std::vector<Mapping>> mappings_; // by pid
    size_t reads_ = 0;
};

// Key of a row of files for which CUDA threads blocked in reads, writes or page faults.
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
    uint64_t read_bytes = 0, written_bytes = 0; // disk I/O
};

class FileWaits {
public:
    explicit FileWaits(int counts_fd) : totals_(counts_fd) {}

    // Waits that ended since the last call, for the threads in `times`. Forgets threads that have exited.
    std::map<FileKey, FileGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                       Processes& processes);

private:
    BlockTotals<file_key, file_count> totals_;
};

} // namespace gpusnoop
