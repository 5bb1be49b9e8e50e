// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of calls, interval by interval.
#pragma once

#include "../bpf/call.h"
#include "bpf_map.hpp"
#include "kernel_names.hpp"

#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

// What happened to one row since the last look.
struct CallDelta {
    call_key key{};
    uint64_t count = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;  // of all time: within the row's duration bucket, if durations are measured
    uint64_t last = 0;    // jiffies, or ns
    launch_shape shape{}; // of launches
    copy_sums copy{};     // of copies
    memory_sums memory{}; // of allocations and frees
    graph_sums graph{};   // of calls of graphs
};

class CallTable {
public:
    explicit CallTable(int map_fd) : map_(map_fd, rest()) {}

    // A call that found no room in the table (RECORD_SPILL).
    void add(const call_event& event);

    // Rows with calls since the last time.
    std::vector<CallDelta> take();

    // The image has gone: its rows are taken out of the table after the next take().
    void retire(const ImageId& image) { retired_.insert(image); }

private:
    // What the kernel side has in the fields that the table's key leaves out.
    static call_key rest()
    {
        call_key key{};
        key.duration = BUCKET_NONE;
        key.stack = -1;
        return key;
    }

    struct Hash {
        size_t operator()(const call_key& key) const
        {
            return std::hash<std::string_view>()({reinterpret_cast<const char*>(&key), sizeof(key)});
        }
    };
    struct Equal {
        bool operator()(const call_key& a, const call_key& b) const { return memcmp(&a, &b, sizeof(a)) == 0; }
    };

    HashTable<call_key, call_stats> map_;
    std::unordered_map<call_key, CallDelta, Hash, Equal> seen_; // sums as of the last take()
    std::unordered_map<call_key, CallDelta, Hash, Equal> spilled_;
    std::set<ImageId> retired_;
};

} // namespace gpusnoop
