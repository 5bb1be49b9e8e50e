// SPDX-License-Identifier: Apache-2.0
#include "base/bpf_map.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdint>
#include <numeric>

namespace gpusnoop {

namespace {

bpf_map_info map_info(int fd)
{
    bpf_map_info info{};
    uint32_t size = sizeof(info);
    if (int error = bpf_map_get_info_by_fd(fd, &info, &size))
        throw Error("cannot read a BPF map: " + errno_text(-error));
    return info;
}

// Limit for the values of one batch, in bytes. Per-CPU values are large on machines with many CPUs.
constexpr size_t max_buffer_bytes = 256 << 10;

size_t value_bytes(const bpf_map_info& info)
{
    if (info.type != BPF_MAP_TYPE_PERCPU_HASH && info.type != BPF_MAP_TYPE_LRU_PERCPU_HASH)
        return info.value_size;
    return (info.value_size + 7) / 8 * 8 * static_cast<size_t>(libbpf_num_possible_cpus());
}

} // namespace

HashReader::HashReader(int fd) : fd_(fd)
{
    const bpf_map_info info = map_info(fd);
    key_size_ = info.key_size;
    value_size_ = value_bytes(info);
    wanted_ = static_cast<uint32_t>(std::clamp<size_t>(max_buffer_bytes / value_size_, 16, 512));
}

bool HashReader::next()
{
    for (;; wanted_ *= 2) { // ENOSPC: a hash bucket does not fit into a batch, so double the batch
        keys_.resize(wanted_ * key_size_);
        values_.resize(wanted_ * value_size_);
        count_ = wanted_;
        LIBBPF_OPTS(bpf_map_batch_opts, options);
        const int error = bpf_map_lookup_batch(fd_, first_ ? nullptr : &position_, &position_, keys_.data(),
                                               values_.data(), &count_, &options);
        if (error == -ENOSPC)
            continue;
        if (error && error != -ENOENT)
            throw Error("cannot read a BPF map: " + errno_text(-error));
        first_ = false;
        return !error;
    }
}

size_t max_entries(int map_fd)
{
    return map_info(map_fd).max_entries;
}

size_t erase_keys(int map_fd, const std::function<bool(const std::byte*)>& is_stale)
{
    const bpf_map_info info = map_info(map_fd);
    std::vector<std::vector<std::byte>> found;
    auto add = [&](const std::byte* key) {
        if (is_stale(key))
            found.emplace_back(key, key + info.key_size);
    };
    if (info.type == BPF_MAP_TYPE_LPM_TRIE) { // batched reads need 5.16
        std::vector<std::byte> key(info.key_size), next(info.key_size);
        for (void* last = nullptr; bpf_map_get_next_key(map_fd, last, next.data()) == 0; last = key.data())
            add((key = next).data());
    } else {
        HashReader(map_fd).for_each([&](const std::byte* key, const std::byte*) { add(key); });
    }
    // Delete keys only after the iteration, because deleting the current key would restart the iteration.
    return static_cast<size_t>(std::ranges::count_if(found, [&](const std::vector<std::byte>& key) {
        return bpf_map_delete_elem(map_fd, key.data()) == 0; // fails if a BPF program has deleted the key first
    }));
}

size_t erase_images(int map_fd, const std::function<bool(const image&)>& is_stale)
{
    const bool trie = map_info(map_fd).type == BPF_MAP_TYPE_LPM_TRIE; // a key begins with the prefix length
    return erase_keys(map_fd, [&](const std::byte* key) {
        image process{};
        memcpy(&process, key + (trie ? sizeof(uint32_t) : 0), sizeof(process));
        return is_stale(process);
    });
}

std::vector<uint64_t> cpu_sums(int map_fd, size_t entries)
{
    const auto cpus = static_cast<size_t>(libbpf_num_possible_cpus());
    std::vector<uint32_t> keys(entries);
    std::vector<uint64_t> values(entries * cpus), sums(entries);
    auto count = static_cast<uint32_t>(entries);
    uint32_t position = 0;
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    // Batched reads of per-CPU arrays need Linux 5.13 (f008d732ab18). ENOENT: the whole array was read.
    const int error = bpf_map_lookup_batch(map_fd, nullptr, &position, keys.data(), values.data(), &count, &options);
    if (error && error != -ENOENT)
        return sums;
    for (size_t i = 0; i < count; i++) {
        const auto* const per_cpu = &values[i * cpus];
        sums.at(keys[i]) = std::accumulate(per_cpu, per_cpu + cpus, uint64_t{0});
    }
    return sums;
}

std::vector<uint64_t> stack_trace(int fd, int32_t id)
{
    std::array<uint64_t, 127> frames{}; // default of kernel.perf_event_max_stack; our maps store no more
    if (id < 0 || bpf_map_lookup_elem(fd, &id, frames.data()) != 0)
        return {};
    return {frames.begin(), std::ranges::find(frames, uint64_t{0})};
}

// There is no system call to wait for BPF programs. Updating a map of maps has that effect: it waits for an RCU grace
// period (maybe_wait_bpf_programs(), 1ae80cf31938, Linux 5.0), after which no non-sleepable program uses the old inner
// map. membarrier(2) cannot be used: it does nothing on a single CPU, and fails with nohz_full.
ProgramBarrier::ProgramBarrier()
    : inner_(bpf_map_create(BPF_MAP_TYPE_ARRAY, "gpusnoop_inner", sizeof(uint32_t), sizeof(uint32_t), 1, nullptr))
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = static_cast<uint32_t>(inner_.get()));
    if (inner_)
        outer_ = Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "gpusnoop_outer", sizeof(uint32_t), sizeof(uint32_t), 1,
                                   &options));
    if (!outer_)
        throw Error("cannot create a BPF map: " + errno_text(errno));
}

bool ProgramBarrier::wait() const
{
    const uint32_t first = 0;
    const int inner = inner_.get();
    return bpf_map_update_elem(outer_.get(), &first, &inner, BPF_ANY) == 0;
}

} // namespace gpusnoop
