// SPDX-License-Identifier: Apache-2.0
// Memory that processes hold, per row of the table of calls: allocated minus freed, minus what was released with its
// context or process.
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

    // Clamped to 0, since a free may be read before its allocation.
    uint64_t count_held() const { return static_cast<uint64_t>(std::max<int64_t>(count, 0)); }
    uint64_t bytes_held() const { return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)); }
};

// "device", "pool", ...; "unknown" if the allocation was not traced.
std::string_view holding_name(uint8_t holding);

// True for memory of any kind; false for reserved addresses, and for mappings and imports of other memory.
bool is_memory(uint8_t holding);

class Holdings {
public:
    // Key of a row: a call's key without the fields that differ between an allocation and its free.
    struct Less {
        bool operator()(const call_key& a, const call_key& b) const { return memcmp(&a, &b, sizeof(a)) < 0; }
    };
    using Amounts = std::map<call_key, Amount, Less>;

    // Selects whether rows are separate per size and per device.
    void distinguish(bool by_size, bool devices) { by_size_ = by_size, by_device_ = devices; }

    void add(const CallDelta& delta);
    void learn(const holding_record& record); // calls replaced() or context_ended()
    // The record's entry was overwritten by a new allocation: its memory was freed by a call that was not traced.
    void replaced(const holding_record& record);
    // All memory of the record's context was released. Context 0: created before tracing began, so its memory is
    // unknown.
    void context_ended(const holding_record& record) { ending_.emplace(record.key.image, record.context); }
    // Releases the memory of ended contexts. Before, add() all calls counted so far, as they may have allocated in
    // them.
    void apply_ended_contexts();

    bool ended(uint32_t context) const { return ended_.contains(context) || swept_.contains(context); }

    const Amounts& now() const { return now_; }
    // Memory released without a free since the last call.
    Amounts drain_released() { return std::exchange(released_, {}); }
    bool holds(const ImageId& image) const; // also true if only the kernel's table still has entries
    // The process's figures may be too high or too low.
    bool approximate(const ImageId& image) const { return approximate_.contains(image); }

    void forget(const std::set<ImageId>& images);

    // Stale entries of the kernel side's table (their contexts ended), plus ended contexts that are still remembered.
    uint64_t sweepable_entries() const;
    void mark_swept();

private:
    static call_key row_of(call_key key);
    call_key row_of(const held_key& key, const held& entry) const;

    bool by_size_ = false;
    bool by_device_ = false;
    Amounts now_;
    Amounts released_;
    std::set<std::pair<ImageId, uint32_t>> ending_; // contexts, until apply_ended_contexts()
    using Contexts = std::unordered_map<uint32_t, ImageId>;
    Contexts ended_; // by number; ended since the last sweep
    Contexts swept_; // ended before the last sweep; kept, as a free in them may still be in flight
    std::set<ImageId> approximate_;
    std::map<ImageId, uint64_t> stale_; // number of entries
};

// Removes the kernel side's records of memory (bpf/kinds/address.bpf.h) that was released with its context. Their epoch
// is over, so nothing finds them, but they would fill the tables until the process exits.
class EndedEpochs {
public:
    // Descriptors of the kernel side's maps: address spaces (one per process), addresses and handles, ranges.
    EndedEpochs(int spaces_fd, std::array<int, 2> places_fds, int ranges_fd)
        : spaces_(spaces_fd), places_fds_(places_fds), ranges_fd_(ranges_fd)
    {}

    // Removes records of epochs that ended since the last call. Skips calls so that the slow scan of the tables takes
    // at most 1/20 of the time.
    void sweep();

private:
    HashTable<image, address_space> spaces_;
    std::array<int, 2> places_fds_;
    int ranges_fd_;
    std::map<ImageId, uint32_t> swept_; // newest epoch at the last sweep
    uint64_t not_before_ns_ = 0;
};

} // namespace gpusnoop
