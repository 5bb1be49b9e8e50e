// SPDX-License-Identifier: Apache-2.0
// Reading whole BPF maps.
#pragma once

#include "base/error.hpp"
#include "bpf/shared/process.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop {

// Every entry of a hash, many at a time: a walk from key to key starts again wherever its key has gone meanwhile.
// Entries that are added meanwhile may be missed. Buffers live in the object, so that reading again allocates nothing.
class HashReader {
public:
    explicit HashReader(int fd); // throws Error

    size_t key_size() const { return key_size_; }
    size_t value_size() const { return value_size_; } // of all CPUs of a per-CPU hash

    // Calls each(key, value).
    template<class F>
    void for_each(F&& each)
    {
        bool more = true;
        for (first_ = true; more;) {
            more = next();
            for (size_t i = 0; i < count_; i++)
                each(&keys_[i * key_size_], &values_[i * value_size_]);
        }
    }

private:
    bool next(); // reads some; false: it was the last; throws Error

    int fd_;
    size_t key_size_;
    size_t value_size_;
    uint32_t wanted_;
    uint32_t count_ = 0;
    uint32_t position_ = 0;
    bool first_ = true;
    std::vector<std::byte> keys_;
    std::vector<std::byte> values_;
};

// Calls each(key, values) for every entry; values: one, or one per possible CPU.
template<class Key, class Value>
class HashTable {
    static_assert(sizeof(Value) % 8 == 0, "the kernel rounds per-CPU values up to 8 bytes");

public:
    // The map's key may be a part of Key; `rest` is what the fields behind it read as.
    explicit HashTable(int fd, const Key& rest = {}) : fd_(fd), rest_(rest), reader_(fd) {}

    template<class F>
    void for_each(F&& each)
    {
        reader_.for_each([&](const std::byte* key_bytes, const std::byte* values) {
            Key key = rest_;
            memcpy(&key, key_bytes, std::min(reader_.key_size(), sizeof(Key)));
            each(key, std::span(reinterpret_cast<const Value*>(values), reader_.value_size() / sizeof(Value)));
        });
    }

    // Of tables with one value for a key, whose keys are whole.
    std::optional<Value> find(const Key& key) const
    {
        Value value{};
        return bpf_map_lookup_elem(fd_, &key, &value) ? std::nullopt : std::optional(value);
    }
    std::optional<Value> take(const Key& key)
    {
        Value value{};
        return bpf_map_lookup_and_delete_elem(fd_, &key, &value) ? std::nullopt : std::optional(value);
    }
    // Where there is none.
    void put(const Key& key, const Value& value) { bpf_map_update_elem(fd_, &key, &value, BPF_NOEXIST); }

    bool erase(const Key& key) { return bpf_map_delete_elem(fd_, &key) == 0; } // false: there is none

    size_t key_size() const { return reader_.key_size(); }

private:
    int fd_;
    Key rest_;
    HashReader reader_;
};

// How many entries a map has room for. Throws Error.
size_t max_entries(int map_fd);

// Takes entries out of a map, by their keys' bytes. Returns how many.
size_t erase_keys(int map_fd, const std::function<bool(const std::byte*)>& gone);

// Those of process images out of a map whose keys begin with one, or a trie of them. Returns how many.
size_t erase_images(int map_fd, const std::function<bool(const image&)>& gone);

} // namespace gpusnoop
