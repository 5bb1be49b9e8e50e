// SPDX-License-Identifier: Apache-2.0
// Memory that processes hold, for each row of the table of calls: allocated minus released memory. Memory is released
// by a free, when its context is destroyed, or when its process exits.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/holding.h"
#include "proc/mapped_file.hpp"
#include "rows/calls.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusnoop {

struct Amount {
    int64_t count = 0;
    int64_t bytes = 0;

    void add(int64_t more, int64_t more_bytes)
    {
        count += more;
        bytes += more_bytes;
    }

    // Return 0 if the amount is negative, which is possible because a free may be read before its allocation.
    uint64_t count_held() const { return static_cast<uint64_t>(std::max<int64_t>(count, 0)); }
    uint64_t bytes_held() const { return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)); }
};

// "device", "pool", ...; "unknown" if the allocation was not traced.
std::string_view holding_name(uint8_t holding);

// True for memory of any kind; false for reserved addresses, and for mappings and imports of other memory.
bool is_memory(uint8_t holding);

class Holdings {
public:
    // Order of row keys. A row key is a call's key without the fields that differ between an allocation and its free.
    struct Less {
        bool operator()(const call_key& a, const call_key& b) const { return memcmp(&a, &b, sizeof(a)) < 0; }
    };
    using Amounts = std::map<call_key, Amount, Less>;

    // Selects whether memory of different sizes, and on different devices, is counted in separate rows.
    void distinguish(bool by_size, bool devices) { by_size_ = by_size, by_device_ = devices; }

    void add(const CallDelta& delta);
    void learn(const holding_record& record); // calls replaced() or context_ended(), by the record's type
    // Call if a new allocation has overwritten the record's entry. This means that the old memory was freed by a call
    // that was not traced.
    void replaced(const holding_record& record);
    // Call if the record's context was destroyed, which released its memory. Context 0 means a context created before
    // tracing began, whose memory is unknown.
    void context_ended(const holding_record& record) { ending_.emplace(record.key.image, record.context); }
    // Subtracts the memory of destroyed contexts. Before this, add() must be called with all calls counted so far,
    // because they may include allocations in these contexts.
    void apply_ended_contexts();

    bool ended(uint32_t context) const { return ended_.contains(context) || swept_.contains(context); }

    const Amounts& now() const { return now_; }
    // Returns the memory that was released without a traced free since the last drain_released().
    Amounts drain_released() { return std::exchange(released_, {}); }
    // True if now() has a row of this process, or if the kernel side's table has stale entries of it.
    bool holds(const ImageId& image) const;
    // True if the amounts of memory for this process may be too high or too low.
    bool approximate(const ImageId& image) const { return approximate_.contains(image); }

    void forget(const std::set<ImageId>& images);

    // Returns the sum of two counts: stale entries in the kernel side's table (their contexts were destroyed), and
    // contexts destroyed since the last sweep. If the sum is large, the table should be swept.
    uint64_t sweepable_entries() const;
    void mark_swept();

private:
    static call_key row_of(call_key key);
    call_key row_of(const held_key& key, const held& entry) const;

    bool by_size_ = false;
    bool by_device_ = false;
    Amounts now_;
    Amounts released_;
    std::set<std::pair<ImageId, uint32_t>> ending_; // destroyed contexts, until apply_ended_contexts()
    using Contexts = std::unordered_map<uint32_t, ImageId>;
    Contexts ended_; // contexts destroyed since the last sweep, by number
    Contexts swept_; // contexts destroyed before the last sweep; kept because a free in them may still be in flight
    std::set<ImageId> approximate_;
    std::map<ImageId, uint64_t> stale_; // number of stale entries in the kernel side's table
};

// Removes the kernel side's records (bpf/kinds/address.bpf.h) of memory that was released with its context. Each
// process has an epoch number, which increases when a context is destroyed. The key of each record contains the epoch
// in which the record was made. Lookups never find records of a past epoch, but such records would fill the tables
// until the process exits.
class EndedEpochs {
public:
    // spaces_fd: map of address spaces, one per process. places_fds: maps of addresses and of handles. ranges_fd: map
    // of address ranges.
    EndedEpochs(int spaces_fd, std::array<int, 2> places_fds, int ranges_fd)
        : spaces_(spaces_fd), places_fds_(places_fds), ranges_fd_(ranges_fd)
    {}

    // Removes records whose epoch has ended since the last sweep. Scanning the tables is slow, and may take at most
    // 1/20 of the time. So a call too soon after the last sweep does nothing.
    void sweep();

private:
    HashTable<image, address_space> spaces_;
    std::array<int, 2> places_fds_;
    int ranges_fd_;
    std::map<ImageId, uint32_t> swept_; // each process's newest epoch at the last sweep
    uint64_t not_before_ns_ = 0;
};

} // namespace gpusnoop
