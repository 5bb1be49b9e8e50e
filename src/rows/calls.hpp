// SPDX-License-Identifier: Apache-2.0
// The kernel side's table of calls, interval by interval.
#pragma once

#include "base/bpf_map.hpp"
#include "base/shares.hpp"
#include "bpf/shared/call.h"
#include "proc/mapped_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusnoop {

// The rows in the kernel that calls are counted in, one value per possible CPU.

// What the table of calls asks of them; tests have others.
class CallRows {
public:
    virtual ~CallRows() = default;

    virtual size_t capacity() const = 0; // of the table; there may be rows in front of it
    // A key may come more than once, with stats of its own each time.
    using Each = std::function<void(const call_key&, std::span<const call_stats>)>;
    virtual void for_each(const Each& each) = 0;
    virtual size_t taken() const = 0; // rows of the table, as of the last for_each() less those erased
    virtual void erase(std::span<const call_key> keys) = 0;
    // Calls count in rows of this generation (0 or CALL_GENERATION) from now on: when it returns, nobody adds to a row
    // of the other one any more. False where that cannot be known.
    virtual bool switch_generation(uint8_t generation) = 0;
};

class KernelCallRows : public CallRows {
public:
    // generation: the variable of the BPF programs. shares: of their tables; must outlive the object. Throws Error.
    KernelCallRows(int table_fd, int front_fd, uint8_t& generation, Shares& shares);

    size_t capacity() const override { return capacity_; }
    void for_each(const Each& each) override;
    size_t taken() const override { return taken_; }
    void erase(std::span<const call_key> keys) override;
    bool switch_generation(uint8_t generation) override;

private:
    call_key key_at(size_t place) const;

    HashTable<call_key, call_stats> table_;
    size_t capacity_;
    size_t taken_ = 0;
    uint32_t key_bytes_;
    size_t cpus_;
    size_t places_; // of all CPUs
    SharedArray<front_row> front_;
    volatile uint8_t& generation_;
    Shares& shares_;
    ProgramBarrier barrier_;
};

// How many rows each CPU has in front of a table of so many: a power of two, in bits.
uint32_t front_bits_for(size_t table_rows, size_t possible_cpus);

// How many rows fit into what the table may take, 64 MiB over all CPUs; some thousands however many CPUs there are.
size_t rows_for(size_t key_bytes, size_t possible_cpus);

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
    std::vector<CallDelta> drain_spilled();

    // Rows with calls since the last time; a row may be there more than once. A table that is nearly full is empty
    // afterwards: each row begins anew with its next call, and those whose time is over make room.
    std::vector<CallDelta> drain();

    // The image has gone: its rows are taken out of the table after the next drain().
    void retire(const ImageId& image) { retired_.insert(image); }

private:
    enum class Rows : uint8_t { all, finished };
    void read(std::vector<CallDelta>& deltas, Rows which = Rows::all);
    bool switch_generation();

    std::unique_ptr<CallRows> rows_;
    bool own_maxima_;
    uint8_t generation_ = 0;
    bool switched_ = false; // nobody adds to rows of the other generation
    bool can_switch_ = true;
    ByCallKey<CallDelta> seen_; // sums as of the last drain()
    ByCallKey<CallDelta> spilled_;
    std::set<ImageId> retired_;
};

} // namespace gpusnoop
