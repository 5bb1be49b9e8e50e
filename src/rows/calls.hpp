// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of calls, interval by interval.
#pragma once

#include "bpf/shared/call.h"
#include "proc/mapped_file.hpp"
#include "rows/call_rows.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusnoop {

// What a call is counted for: which sums it has, and which tool shows it. A copy that waits is counted for both.
enum class CallPart : uint8_t {
    launch,
    graph,      // cudalaunch counts the launch of a graph as one like others
    graph_life, // cudagraph tells of all other calls of graphs
    copy,
    wait,
    poll,
    memory,
    driver,
};
CallPart part_of(const call_key& key);

// Figures of one row, by their names in bpf/shared/call.h. CALL_MAX_NS is that of these calls alone if the table was
// made for that, else of all time.
struct CallDelta {
    call_key key{};
    call_stats stats{};

    uint64_t operator[](size_t figure) const { return stats.v[figure]; }
    __u64& operator[](size_t figure) { return stats.v[figure]; }
    launch_shape shape() const; // of launches
    void set_shape(const launch_shape& shape);
};

// Adds later calls of the same row, each figure by its rule.
void add(CallDelta& to, const CallDelta& delta);
// Multiplies all sums, rounded.
void scale(CallDelta& delta, double factor);

struct CallKeyHash {
    size_t operator()(const call_key& key) const
    {
        return std::hash<std::string_view>()({reinterpret_cast<const char*>(&key), sizeof(key)});
    }
};
struct CallKeyEqual {
    bool operator()(const call_key& a, const call_key& b) const { return memcmp(&a, &b, sizeof(a)) == 0; }
};
template<class Value>
using ByCallKey = std::unordered_map<call_key, Value, CallKeyHash, CallKeyEqual>;

class CallTable {
public:
    // own_maxima: the kernel side begins new rows at each drain(), so that max_ns is the maximum of its calls.
    explicit CallTable(std::unique_ptr<CallRows> rows, bool own_maxima = false)
        : rows_(std::move(rows)), own_maxima_(own_maxima)
    {}

    // A call that found no room in the table (RECORD_SPILL).
    void add(const call_event& event);
    size_t spilled() const { return spilled_.size(); } // rows of those, since the last drain()

    // The same, without the kernel's table: what drain() would begin with.
    std::vector<CallDelta> take_spilled();

    // Rows with calls since the last time; a row may be there more than once. A table that is nearly full is empty
    // afterwards: each row begins anew with its next call, and those whose time is over make room.
    std::vector<CallDelta> drain();

    // The image has gone: its rows are taken out of the table after the next drain().
    void retire(const ImageId& image) { retired_.insert(image); }

private:
    enum class Rows : uint8_t { all, finished };
    void read(std::vector<CallDelta>& deltas, Rows which = Rows::all);
    bool turn();

    std::unique_ptr<CallRows> rows_;
    bool own_maxima_;
    uint8_t generation_ = 0;
    bool turned_ = false; // nobody adds to rows of the other generation
    bool can_turn_ = true;
    ByCallKey<CallDelta> seen_; // sums as of the last drain()
    ByCallKey<CallDelta> spilled_;
    std::set<ImageId> retired_;
};

} // namespace gpusnoop
