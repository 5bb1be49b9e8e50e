// SPDX-License-Identifier: Apache-2.0
#include "rows/call_rows.hpp"

#include "base/shared_word.hpp"

#include <algorithm>
#include <bit>
#include <bpf/libbpf.h>
#include <string_view>
#include <unordered_set>

namespace gpusnoop {
namespace {

constexpr size_t table_bytes = 64 << 20;
constexpr size_t front_bytes = 4 << 20;
constexpr size_t front_share = 16; // of the table's rows: of one that is kept small, few are in front

// What the kernel side has in the fields that the table's key leaves out.
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

// With the pid 0 where the place is free.
call_key KernelCallRows::key_at(size_t place) const
{
    const volatile uint64_t* words = reinterpret_cast<const volatile uint64_t*>(&front_[place].key);
    const uint64_t first = load_acquire(words[0]); // it is written last
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
        // The next key that takes the place finds nothing counted.
        store_release<uint64_t>(*reinterpret_cast<volatile uint64_t*>(&front_[place].key), 0);
    }
    for (const call_key& key : keys)
        taken_ -= table_.erase(key);
    shares_.set_rows(taken_);
}

bool KernelCallRows::turn(uint8_t generation)
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
