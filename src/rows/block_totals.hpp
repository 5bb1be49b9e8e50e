// SPDX-License-Identifier: Apache-2.0
// A table of the kernel side's, of blocks of threads that call: what has been added to it since the last report.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/block.h"
#include "rows/thread_times.hpp"

#include <cstring>
#include <map>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusnoop {

// Key has the place of a thread, Count the time and the number of its blocks.
template<class Key, class Count>
class BlockTotals {
    static_assert(std::has_unique_object_representations_v<Key>); // they are compared as bytes

public:
    explicit BlockTotals(int fd) : table_(fd) {}

    // each(key, the thread, its count, what of that is new), of threads that have just been drained; then those that
    // have ended are forgotten.
    template<class Each>
    void drain(const std::vector<ThreadTime>& times, Each&& each)
    {
        const auto threads = by_place(times);
        std::vector<Key> ended;
        table_.for_each([&](const Key& key, std::span<const Count> counts) {
            const auto thread = threads.find(key.place);
            if (thread == threads.end())
                return; // with the next report
            if (thread->second->ended)
                ended.push_back(key);
            const Count& now = counts.front();
            block_count& told = told_[key];
            if (now.times == told.times)
                return;
            each(key, *thread->second, now, block_count{now.sum - told.sum, now.times - told.times});
            told = {now.sum, now.times};
        });
        for (const Key& key : ended) {
            told_.erase(key);
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
    std::map<Key, block_count, ByBytes> told_;
};

} // namespace gpusnoop
