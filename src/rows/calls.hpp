// SPDX-License-Identifier: Apache-2.0
// Reader of the kernel side's table of calls: returns the calls of each interval.
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

// Rows in which the kernel side counts calls. Interface, so that tests can replace the kernel.
class CallRows {
public:
    virtual ~CallRows() = default;

    virtual size_t capacity() const = 0; // of the table; each CPU's front rows (see front_bits_for()) are not included
    // Passes each row's key and its values, one per possible CPU. A key may occur several times, with separate values.
    using Each = std::function<void(const call_key&, std::span<const call_stats>)>;
    virtual void for_each(const Each& each) = 0;
    virtual size_t taken() const = 0; // rows in use in the table: at the last for_each(), less those erased since
    virtual void erase(std::span<const call_key> keys) = 0;
    // From now on, calls are counted in rows of this generation (0 or CALL_GENERATION). After it returns true, no
    // program adds to rows of the other one. Returns false if that cannot be guaranteed.
    virtual bool switch_generation(uint8_t generation) = 0;
};

class KernelCallRows : public CallRows {
public:
    // generation: variable of the BPF programs. shares: of their tables; must outlive the object. Throws Error.
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
    size_t places_; // front rows of all CPUs
    SharedArray<front_row> front_;
    volatile uint8_t& generation_;
    Shares& shares_;
    ProgramBarrier barrier_;
};

// log2 of the number of front rows per CPU. These rows of a CPU are cheaper to count in than the shared table.
uint32_t front_bits_for(size_t table_rows, size_t possible_cpus);

// Number of table rows that fit into 64 MiB over all CPUs, but at least 4096 and at most 16384.
size_t rows_for(size_t key_bytes, size_t possible_cpus);

// Kind of a call's sums, which determines the tool that shows them. A copy that waits is counted as copy and as wait.
enum class CallPart : uint8_t {
    launch,
    graph,      // launches of graphs; cudalaunch shows them among the launches
    graph_life, // all other graph calls; shown by cudagraph
    copy,
    wait,
    poll,
    memory,
    driver,
};
CallPart part_of(const call_key& key);

// Figures of one row, indexed by their names in bpf/shared/call.h. CALL_MAX_NS is the maximum of these calls if the
// table has own_maxima, else of all calls so far.
struct CallDelta {
    call_key key{};
    call_stats stats{};

    uint64_t operator[](size_t figure) const { return stats.v[figure]; }
    __u64& operator[](size_t figure) { return stats.v[figure]; }
    launch_shape shape() const; // only for launches
    void set_shape(const launch_shape& shape);
};

// Adds later calls of the same row: sums, maxima or latest values, depending on the figure.
void add(CallDelta& to, const CallDelta& delta);
// Multiplies all sums, and rounds them.
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
    // own_maxima: the kernel side starts new rows at each drain(), so that CALL_MAX_NS is the maximum of the interval.
    explicit CallTable(std::unique_ptr<CallRows> rows, bool own_maxima = false)
        : rows_(std::move(rows)), own_maxima_(own_maxima)
    {}

    // Adds a call for which the kernel's table had no room (RECORD_SPILL).
    void add(const call_event& event);
    size_t spilled() const { return spilled_.size(); } // rows of such calls since the last drain()

    // Returns only the rows of spilled calls, as drain() would first.
    std::vector<CallDelta> drain_spilled();

    // Rows with calls since the last drain(); a row may occur more than once. Empties a table that is nearly full: each
    // row restarts with its next call, so rows no longer used leave room.
    std::vector<CallDelta> drain();

    // The process has exited: removes its rows from the table after the next drain().
    void retire(const ImageId& image) { retired_.insert(image); }

private:
    enum class Rows : uint8_t { all, finished };
    void read(std::vector<CallDelta>& deltas, Rows which = Rows::all);
    bool switch_generation();

    std::unique_ptr<CallRows> rows_;
    bool own_maxima_;
    uint8_t generation_ = 0;
    bool switched_ = false; // no program adds to rows of the other generation
    bool can_switch_ = true;
    ByCallKey<CallDelta> seen_; // sums at the last drain()
    ByCallKey<CallDelta> spilled_;
    std::set<ImageId> retired_;
};

} // namespace gpusnoop
