// SPDX-License-Identifier: Apache-2.0
// Reading whole BPF maps.
#pragma once

#include "../bpf/process.h"
#include "error.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace gpusnoop {

size_t map_key_size(int fd); // throws Error

// Calls each(key, values) for every entry of a per-CPU hash; values: one per possible CPU. Entries that are added
// meanwhile may be missed this time. Buffers live in the object, so that reading again allocates nothing.
template<class Key, class Value>
class PerCpuHash {
    static_assert(sizeof(Value) % 8 == 0, "the kernel rounds per-CPU values up to 8 bytes");

public:
    // The map's key may be a part of Key; `rest` is what the fields behind it read as.
    explicit PerCpuHash(int fd, const Key& rest = {})
        : fd_(fd), rest_(rest), key_size_(std::min(map_key_size(fd), sizeof(Key))),
          cpus_(static_cast<size_t>(libbpf_num_possible_cpus())), keys_(batch * key_size_), values_(batch * cpus_)
    {}

    template<class F>
    void for_each(F&& each)
    {
        uint32_t position = 0;
        uint32_t wanted = batch;
        for (bool first = true;; first = false) {
            uint32_t count = wanted;
            LIBBPF_OPTS(bpf_map_batch_opts, options);
            int error = bpf_map_lookup_batch(fd_, first ? nullptr : &position, &position, keys_.data(), values_.data(),
                                             &count, &options);
            if (error == -ENOSPC) { // one hash bucket holds more than was asked for
                wanted *= 2;
                keys_.resize(wanted * key_size_);
                values_.resize(wanted * cpus_);
                continue;
            }
            if (error && error != -ENOENT)
                throw Error("a BPF table cannot be read: " + errno_text(-error));
            for (size_t i = 0; i < count; i++) {
                Key key = rest_;
                memcpy(&key, &keys_[i * key_size_], key_size_);
                each(key, std::span<const Value>(&values_[i * cpus_], cpus_));
            }
            if (error == -ENOENT)
                return;
        }
    }

    void erase(const Key& key) { bpf_map_delete_elem(fd_, &key); }

private:
    static constexpr size_t batch = 512;

    int fd_;
    Key rest_;
    size_t key_size_;
    size_t cpus_;
    std::vector<char> keys_;
    std::vector<Value> values_;
};

// Takes the entries of process images out of a map whose keys begin with one.
void erase_images(int map_fd, const std::function<bool(const image&)>& gone);

} // namespace gpusnoop
