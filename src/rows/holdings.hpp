// SPDX-License-Identifier: Apache-2.0
// What processes hold, by row of the table of calls: what was allocated there less what was freed, and less what went
// with its context or its process.
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

    // Not less than nothing: a free may be read before its allocation is.
    uint64_t count_held() const { return static_cast<uint64_t>(std::max<int64_t>(count, 0)); }
    uint64_t bytes_held() const { return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)); }
};

// "device", "pool", ...; "unknown" for what was not seen to be allocated.
std::string_view holding_name(uint8_t holding);

// Memory, of whatever kind; not addresses alone, and not what is a name for other memory.
bool is_memory(uint8_t holding);

class Holdings {
public:
    // What a row is known by: a call's key without what differs between an allocation and its free.
    struct Less {
        bool operator()(const call_key& a, const call_key& b) const { return memcmp(&a, &b, sizeof(a)) < 0; }
    };
    using Amounts = std::map<call_key, Amount, Less>;

    // by_size: rows tell sizes apart, devices: and devices.
    void distinguish(bool by_size, bool devices) { by_size_ = by_size, by_device_ = devices; }

    void add(const CallDelta& delta);
    void learn(const holding_record& record); // whichever of the two it is
    // The record's entry was overwritten: what it stood for had been freed unseen.
    void replaced(const holding_record& record);
    // All that was allocated in the record's context has gone. Contexts from before tracing began are unknown.
    void context_ended(const holding_record& record) { ending_.emplace(record.key.image, record.context); }
    // Takes out what went with contexts. Before it, add() what was allocated in them: for all of them at once, as the
    // table of calls is read as a whole.
    void apply_ended_contexts();

    bool ended(uint32_t context) const { return ended_.contains(context) || swept_.contains(context); }

    const Amounts& now() const { return now_; }
    // What has gone without a call of its own since the last time.
    Amounts drain_released() { return std::exchange(released_, {}); }
    bool holds(const ImageId& image) const; // also in the kernel's table alone
    // Figures of the process may be too high, or too low.
    bool approximate(const ImageId& image) const { return approximate_.contains(image); }

    void forget(const std::set<ImageId>& images);

    // Entries of the kernel side's table that went with their contexts and may still be there, and contexts that are
    // kept for their sake.
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
    Contexts ended_; // since room was made; by number
    Contexts swept_; // before that: a free may still be under way
    std::set<ImageId> approximate_;
    std::map<ImageId, uint64_t> stale_; // entries
};

// What the kernel side knows of memory (bpf/kinds/address.bpf.h) that went with a context: its epoch is over, and
// nothing finds it any more. Left alone it would fill the tables for as long as its process lives.
class EndedEpochs {
public:
    // The kernel side's tables: of processes, of what is known by addresses and by handles, and of ranges.
    EndedEpochs(int spaces_fd, std::array<int, 2> places_fds, int ranges_fd)
        : spaces_(spaces_fd), places_fds_(places_fds), ranges_fd_(ranges_fd)
    {}

    // Takes out what has come to its end since the last time. To walk through the tables takes a while: there are
    // pauses, so that it is a twentieth of the time at most.
    void sweep();

private:
    HashTable<image, address_space> spaces_;
    std::array<int, 2> places_fds_;
    int ranges_fd_;
    std::map<ImageId, uint32_t> swept_; // epochs that were the newest then
    uint64_t not_before_ns_ = 0;
};

} // namespace gpusnoop
