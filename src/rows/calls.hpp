// SPDX-License-Identifier: Apache-2.0
// Reader of the kernel side's table of calls: returns the calls made in each interval.
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

// Rows in which the kernel side counts calls. An interface, so that tests need no kernel.
class CallRows {
public:
    virtual ~CallRows() = default;

    // maximum number of rows in the shared table; front rows are not included (front_bits_for())
    virtual size_t capacity() const = 0;
    // Calls each(key, values) for each row, with one value per possible CPU. If a key is passed several times, all its
    // values must be added up.
    using Each = std::function<void(const call_key&, std::span<const call_stats>)>;
    virtual void for_each(const Each& each) = 0;
    virtual size_t taken() const = 0; // rows in use at the last for_each(), minus rows erased since
    virtual void erase(std::span<const call_key> keys) = 0;
    // Makes the kernel side count in rows of this generation (0 or CALL_GENERATION). Returns true once no BPF program
    // adds to rows of the other generation, or false if that cannot be guaranteed.
    virtual bool switch_generation(uint8_t generation) = 0;
};

class KernelCallRows : public CallRows {
public:
    // generation: the BPF variable `generation` (base/call.bpf.h), which switch_generation() sets. shares: each
    // process's share of the kernel tables. Both must outlive the object. Throws Error.
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
    size_t places_; // number of front rows (front_bits_for()), summed over all CPUs
    SharedArray<front_row> front_;
    volatile uint8_t& generation_;
    Shares& shares_;
    ProgramBarrier barrier_;
};

// Log2 of the number of front rows per CPU. Front rows are a CPU's cache of the shared table, because counting in them
// is cheaper (bpf/base/call.bpf.h).
uint32_t front_bits_for(size_t table_rows, size_t possible_cpus);

// Size of the table in rows: as many as fit into 64 MiB with one copy per CPU, but at least 4096 and at most 16384.
size_t rows_for(size_t key_bytes, size_t possible_cpus);

// Category of calls, which determines the tool that shows them. A copy or free that blocks the host is counted twice:
// as `copy` or `memory`, and as `wait`.
enum class CallPart : uint8_t {
    launch,
    graph,      // launches of graphs; cudalaunch shows them together with kernel launches
    graph_life, // all other graph calls, shown by cudagraph
    copy,
    wait,
    poll,
    memory,
    driver,
};
CallPart part_of(const call_key& key);

// Calls added to one row in an interval. operator[] takes an index such as CALL_COUNT (bpf/shared/call.h). CALL_MAX_NS
// is the longest duration of these calls if the table was created with own_maxima. Otherwise it is the longest duration
// of all calls of the row so far.
struct CallDelta {
    call_key key{};
    call_stats stats{};

    uint64_t operator[](size_t figure) const { return stats.v[figure]; }
    __u64& operator[](size_t figure) { return stats.v[figure]; }
    launch_shape shape() const; // only for launches
    void set_shape(const launch_shape& shape);
};

// Adds later calls to a row. Most values are summed; for some, the row keeps the maximum or the latest value.
void add(CallDelta& to, const CallDelta& delta);
// Multiplies all sums by the factor and rounds them.
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
    // own_maxima: start new rows at each drain(), so that CALL_MAX_NS is the longest duration in the interval.
    explicit CallTable(std::unique_ptr<CallRows> rows, bool own_maxima = false)
        : rows_(std::move(rows)), own_maxima_(own_maxima)
    {}

    // Adds a call that was reported as an event because the kernel side's table was full (RECORD_SPILL).
    void add(const call_event& event);
    size_t spilled() const { return spilled_.size(); } // number of rows that add() has used since the last drain()

    // Like drain(), but returns only the calls passed to add().
    std::vector<CallDelta> drain_spilled();

    // Returns the rows that had calls since the last drain(); a row may occur more than once. Empties the kernel's
    // table if it is nearly full; later calls then create their rows again.
    std::vector<CallDelta> drain();

    // Call when a process has exited. The next drain() removes its rows from the kernel's table.
    void retire(const ImageId& image) { retired_.insert(image); }

private:
    enum class Rows : uint8_t { all, finished };
    void read(std::vector<CallDelta>& deltas, Rows which = Rows::all);
    bool switch_generation();

    std::unique_ptr<CallRows> rows_;
    bool own_maxima_;
    uint8_t generation_ = 0;
    bool switched_ = false; // true if no BPF program adds to rows of a generation other than generation_
    bool can_switch_ = true;
    ByCallKey<CallDelta> seen_; // sums at the last drain()
    ByCallKey<CallDelta> spilled_;
    std::set<ImageId> retired_;
};

} // namespace gpusnoop
