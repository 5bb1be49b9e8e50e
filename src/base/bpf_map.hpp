// SPDX-License-Identifier: Apache-2.0
// Reading whole BPF maps.
#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/shared_word.hpp"
#include "bpf/shared/process.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sys/mman.h>
#include <utility>
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

// Numbers that each CPU counts for itself.

// The first so many of a per-CPU array, each added up over all CPUs, by one call; 0 where they cannot be read.
std::vector<uint64_t> cpu_sums(int map_fd, size_t entries);

// What a BPF program has kept of a stack.

// Addresses of code, innermost first; none where the id is negative, or not known. fd: of a map of stack traces.
std::vector<uint64_t> stack_trace(int fd, int32_t id);

// Waiting until no BPF program that runs now runs any more.
class ProgramBarrier {
public:
    ProgramBarrier(); // throws Error

    // What is written before is read by every program that runs after. False where the kernel refuses. A few
    // milliseconds, or some ten on a large machine. Not for sleepable programs.
    bool wait() const;

private:
    Fd inner_, outer_;
};

struct BpfLinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

using BpfLink = std::unique_ptr<bpf_link, BpfLinkDeleter>;

// RAII over the three functions of a generated skeleton.
template<class S>
struct SkeletonDeleter {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
};

template<class S>
using Skeleton = std::unique_ptr<S, SkeletonDeleter<S>>;

// Skeletons declare static open(), load() and destroy() for C++.
template<class S>
Skeleton<S> open_skeleton()
{
    Skeleton<S> skeleton(S::open(nullptr));
    if (!skeleton)
        throw Error("the BPF object cannot be opened: " + errno_text(errno));
    return skeleton;
}

// RAII over memory that is shared with the kernel side: the values of a BPF array.
template<class T>
class SharedArray {
public:
    SharedArray(int fd, size_t elements) : fd_(fd) { reach(elements); }
    ~SharedArray() { unmap(); }
    SharedArray(const SharedArray&) = delete;
    SharedArray& operator=(const SharedArray&) = delete;

    // From now on the first so many of the map are here. The others take no memory of the process: the kernel maps all
    // pages at once.
    void reach(size_t elements)
    {
        if (elements * sizeof(T) <= bytes_)
            return;
        unmap();
        const size_t bytes = elements * sizeof(T);
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory == MAP_FAILED)
            throw Error("a BPF table cannot be mapped: " + errno_text(errno));
        memory_ = memory;
        bytes_ = bytes;
    }

    volatile T& operator[](size_t i) const { return static_cast<volatile T*>(memory_)[i]; }

private:
    void unmap()
    {
        if (bytes_)
            munmap(memory_, std::exchange(bytes_, 0));
    }

    int fd_;
    size_t bytes_ = 0;
    void* memory_ = nullptr;
};

} // namespace gpusnoop
