// SPDX-License-Identifier: Apache-2.0
#include "rows/calls.hpp"

#include "base/bpf_map.hpp"
#include "bpf/shared/ioctl.h"
#include "bpf/shared/probe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bpf/libbpf.h>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <unordered_set>

namespace gpusnoop {

// The kernel side uses the same layout; padding would make equal keys differ.
static_assert(sizeof(call_key) == 72);
static_assert(sizeof(launch_shape) == 32 && sizeof(copy) == 32 && sizeof(memory_call) == 32);
static_assert(sizeof(call_stats) == 64 && offsetof(call_stats, v[LAUNCH_SHAPE]) + sizeof(launch_shape) == 64);
static_assert(sizeof(call_event) == 24 + 72 + 32 + 16);

namespace {

enum class Merge : uint8_t { sum, most, latest }; // latest: the value from the row with the larger CALL_LAST

using Merges = std::array<Merge, CALL_FIGURES>;

// Returns, for each value of a row, how to merge the values of two CPUs or of two intervals. Values that are not listed
// below are added.
constexpr Merges merges_of(CallPart part)
{
    Merges merges{};
    merges[CALL_MAX_NS] = merges[CALL_LAST] = Merge::most;
    if (part == CallPart::launch)
        std::fill(merges.begin() + LAUNCH_SHAPE, merges.end(), Merge::latest);
    else if (part == CallPart::memory || part == CallPart::driver)
        merges[MEMORY_LAST_BYTES] = Merge::latest;
    return merges;
}

void merge(const Merges& merges, call_stats& to, const call_stats& stats)
{
    const bool is_latest = stats.v[CALL_COUNT] && stats.v[CALL_LAST] >= to.v[CALL_LAST];
    for (size_t i = 0; i < CALL_FIGURES; i++) {
        if (merges[i] == Merge::sum)
            to.v[i] += stats.v[i];
        else if (merges[i] == Merge::most)
            to.v[i] = std::max(to.v[i], stats.v[i]);
        else if (is_latest)
            to.v[i] = stats.v[i];
    }
}

// The row that the kernel side would have created for the call.
CallDelta one_call(const call_event& event)
{
    CallDelta call{.key = event.key};
    call.key.flags &= static_cast<uint8_t>(~CALL_GENERATION);
    call[CALL_COUNT] = 1;
    call[CALL_TOTAL_NS] = call[CALL_MAX_NS] = event.duration_ns;
    switch (part_of(event.key)) {
    case CallPart::copy:
        call[CALL_COUNT] = event.copy.copies;
        sums_of_copy(&event.copy, call.stats.v);
        break;
    case CallPart::memory:
    case CallPart::driver:
        sums_of_memory(&event.memory, call.stats.v);
        call[MEMORY_LAST_BYTES] = event.memory.bytes;
        break;
    case CallPart::graph:
    case CallPart::graph_life:
        sums_of_graph(&event.key, &event.graph, call.stats.v);
        break;
    case CallPart::launch:
        call.set_shape(event.shape);
        break;
    case CallPart::wait:
    case CallPart::poll:
        break;
    }
    return call;
}

} // namespace

CallPart part_of(const call_key& key)
{
    if (key.layer == LAYER_KERNEL)
        return CallPart::driver;
    switch (key.kind) {
    case KIND_COPY:
        return CallPart::copy;
    case KIND_WAIT:
        return key.wait.wait == WAIT_POLL ? CallPart::poll : CallPart::wait;
    case KIND_ALLOC:
    case KIND_FREE:
    case KIND_TRIM:
        return CallPart::memory;
    case KIND_LAUNCH:
    case KIND_HOST_FUNC:
        return CallPart::launch;
    case KIND_GRAPH_LAUNCH:
        return CallPart::graph;
    default:
        return CallPart::graph_life;
    }
}

launch_shape CallDelta::shape() const
{
    launch_shape shape{};
    memcpy(&shape, &stats.v[LAUNCH_SHAPE], sizeof(shape));
    return shape;
}

void CallDelta::set_shape(const launch_shape& shape)
{
    memcpy(&stats.v[LAUNCH_SHAPE], &shape, sizeof(shape));
}

void add(CallDelta& to, const CallDelta& delta)
{
    merge(merges_of(part_of(delta.key)), to.stats, delta.stats);
}

void scale(CallDelta& delta, double factor)
{
    const Merges merges = merges_of(part_of(delta.key));
    for (size_t i = 0; i < CALL_FIGURES; i++)
        if (merges[i] == Merge::sum)
            delta[i] =
                static_cast<uint64_t>(std::llround(static_cast<double>(static_cast<int64_t>(delta[i])) * factor));
}

void CallTable::add(const call_event& event)
{
    const CallDelta call = one_call(event);
    gpusnoop::add(spilled_.try_emplace(call.key, CallDelta{.key = call.key}).first->second, call);
}

void CallTable::read(std::vector<CallDelta>& deltas, Rows which)
{
    // Rows of exited processes can be deleted without losing counts, because no BPF program adds to them any more.
    // After a switch of the generation, the same is true of rows of the previous generation.
    const auto is_finished = [this](const call_key& key) {
        return retired_.contains(key.image) || (switched_ && (key.flags & CALL_GENERATION) != generation_);
    };

    ByCallKey<CallDelta> sums;
    rows_->for_each([&](const call_key& key, std::span<const call_stats> per_cpu) {
        if (which == Rows::finished && !is_finished(key))
            return;
        CallDelta& sum = sums.try_emplace(key, CallDelta{.key = key}).first->second;
        const Merges merges = merges_of(part_of(key));
        for (const call_stats& stats : per_cpu)
            merge(merges, sum.stats, stats);
    });
    std::vector<call_key> finished;
    for (const auto& [key, now] : sums) {
        CallDelta delta = now;
        delta.key.flags &= static_cast<uint8_t>(~CALL_GENERATION);
        CallDelta& seen = seen_[key];
        const Merges merges = merges_of(part_of(key));
        for (size_t i = 0; i < CALL_FIGURES; i++)
            if (merges[i] == Merge::sum)
                delta[i] -= seen[i];
        delta[CALL_MAX_NS] =
            std::min(delta[CALL_MAX_NS], delta[CALL_TOTAL_NS]); // CALL_MAX_NS may be from an earlier interval
        seen = now;
        // Skips rows without new calls. CALL_COUNT counts copies, so a batch of 0 copies is a call that changes only
        // COPY_CONTINUED.
        if (delta[CALL_COUNT] || (part_of(key) == CallPart::copy && delta[COPY_CONTINUED]))
            deltas.push_back(delta);
        if (is_finished(key)) {
            finished.push_back(key);
            seen_.erase(key);
        }
    }
    rows_->erase(finished);
    retired_.clear();
}

bool CallTable::switch_generation()
{
    if (!can_switch_)
        return false;
    generation_ ^= CALL_GENERATION;
    return switched_ = can_switch_ = rows_->switch_generation(generation_);
}

std::vector<CallDelta> CallTable::drain_spilled()
{
    std::vector<CallDelta> deltas;
    for (const auto& [key, delta] : std::exchange(spilled_, {}))
        deltas.push_back(delta);
    return deltas;
}

std::vector<CallDelta> CallTable::drain()
{
    std::vector<CallDelta> deltas = drain_spilled();
    // Rows of the new generation are read only by the next drain(). Otherwise, they would be read in two intervals, and
    // CALL_MAX_NS would be the maximum of both.
    if (own_maxima_ && switch_generation()) {
        read(deltas, Rows::finished);
        return deltas;
    }
    read(deltas);
    // After a switch, the rows of the old generation stay in the table until they are read and erased. The last quarter
    // of the table is kept free for rows that calls create before that.
    if (rows_->taken() >= rows_->capacity() / 4 * 3 && switch_generation())
        read(deltas);
    return deltas;
}

namespace {

constexpr size_t table_bytes = 64 << 20;
constexpr size_t front_bytes = 4 << 20;
// A CPU has at most 1/16 as many front rows as the table has rows. Otherwise, the front rows of a small table would
// take more memory than the table.
constexpr size_t front_share = 16;

// Values of fields that are missing in the table's key, which may be shorter than call_key.
call_key key_defaults()
{
    call_key key{};
    key.duration = BUCKET_NONE;
    key.stack = -1;
    return key;
}

} // namespace

KernelCallRows::KernelCallRows(int table_fd, int front_fd, uint8_t& generation, Shares& shares)
    : table_(table_fd, key_defaults()), capacity_(max_entries(table_fd)),
      key_bytes_(static_cast<uint32_t>(table_.key_size())), cpus_(static_cast<size_t>(libbpf_num_possible_cpus())),
      places_(max_entries(front_fd)), front_(front_fd, places_), generation_(generation), shares_(shares)
{}

// Returns the key of a front row, that is, of a CPU's own row (see front_bits_for()). The key's pid is 0 if the row is
// free.
call_key KernelCallRows::key_at(size_t place) const
{
    const volatile uint64_t* words = reinterpret_cast<const volatile uint64_t*>(&front_[place].key);
    const uint64_t first = load_acquire(words[0]); // the kernel side writes this word last, which makes the row valid
    call_key key = key_defaults();
    for (uint32_t i = 0; i * 8 < key_bytes_; i++) {
        const uint64_t word = i ? words[i] : first;
        memcpy(reinterpret_cast<std::byte*>(&key) + i * 8, &word, std::min<size_t>(8, key_bytes_ - i * 8));
    }
    return key;
}

void KernelCallRows::for_each(const Each& each)
{
    for (size_t place = 0; place < places_; place++) {
        if (!front_[place].key.image.pid)
            continue;
        const call_stats stats = const_cast<const call_stats&>(front_[place].stats);
        each(key_at(place), {&stats, 1});
    }
    taken_ = 0;
    table_.for_each([&](const call_key& key, std::span<const call_stats> per_cpu) {
        taken_++;
        each(key, per_cpu);
    });
}

void KernelCallRows::erase(std::span<const call_key> keys)
{
    const auto bytes = [this](const call_key& key) {
        return std::string_view(reinterpret_cast<const char*>(&key), key_bytes_);
    };
    std::unordered_set<std::string_view> erased;
    for (const call_key& key : keys)
        erased.insert(bytes(key));
    for (size_t place = 0; place < places_ && !erased.empty(); place++) {
        if (!front_[place].key.image.pid || !erased.contains(bytes(key_at(place))))
            continue;
        const_cast<call_stats&>(front_[place].stats) = {};
        // Frees the row only after clearing its counts, so that they start at 0 for its next key.
        store_release<uint64_t>(*reinterpret_cast<volatile uint64_t*>(&front_[place].key), 0);
    }
    for (const call_key& key : keys)
        taken_ -= table_.erase(key);
    shares_.set_rows(taken_);
}

bool KernelCallRows::switch_generation(uint8_t generation)
{
    generation_ = generation;
    shares_.begin_new_rows();
    return barrier_.wait();
}

uint32_t front_bits_for(size_t table_rows, size_t possible_cpus)
{
    const size_t rows = std::min(table_rows / front_share,
                                 std::clamp<size_t>(front_bytes / sizeof(front_row) / possible_cpus, 64, 1024));
    return static_cast<uint32_t>(std::bit_width(std::max<size_t>(rows, 2)) - 1);
}

size_t rows_for(size_t key_bytes, size_t possible_cpus)
{
    return std::clamp<size_t>(table_bytes / (key_bytes + sizeof(call_stats) * possible_cpus), 4096, 16384);
}

} // namespace gpusnoop
