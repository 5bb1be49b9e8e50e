// SPDX-License-Identifier: Apache-2.0
// Helpers for BPF maps: reading whole maps, typed access, memory mapping; RAII owners of links and skeletons.
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

// Reads all entries of a hash map in batches. Iterating key by key would restart whenever the current key is deleted.
// Entries that are added during the read may be missed. Later reads reuse the buffers.
class HashReader {
public:
    explicit HashReader(int fd); // throws Error

    size_t key_size() const { return key_size_; }
    size_t value_size() const { return value_size_; } // in a per-CPU hash, the size of the values of all CPUs together

    // Calls each(key, value) for every entry.
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
    bool next(); // reads one batch; false if it was the last; throws Error

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

// Typed access to a hash map. Values are passed as a span of one value or, in a per-CPU map, of one value per possible
// CPU.
template<class Key, class Value>
class HashTable {
    static_assert(sizeof(Value) % 8 == 0, "the kernel rounds per-CPU values up to 8 bytes");

public:
    // The map's key may be a prefix of Key. for_each() then takes the remaining fields of Key from `rest`.
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

    // The next four methods do not work for per-CPU maps, or if the map's key is only a prefix of Key.
    std::optional<Value> find(const Key& key) const
    {
        Value value{};
        return bpf_map_lookup_elem(fd_, &key, &value) ? std::nullopt : std::optional(value);
    }
    std::optional<Value> extract(const Key& key)
    {
        Value value{};
        return bpf_map_lookup_and_delete_elem(fd_, &key, &value) ? std::nullopt : std::optional(value);
    }
    // Does nothing if the key exists.
    void insert(const Key& key, const Value& value) { bpf_map_update_elem(fd_, &key, &value, BPF_NOEXIST); }
    // Returns false if the key does not exist.
    bool erase(const Key& key) { return bpf_map_delete_elem(fd_, &key) == 0; }

    size_t key_size() const { return reader_.key_size(); }

private:
    int fd_;
    Key rest_;
    HashReader reader_;
};

// Returns the capacity of a map. Throws Error.
size_t max_entries(int map_fd);

// Deletes the entries whose keys are stale. Returns the number of deleted entries.
size_t erase_keys(int map_fd, const std::function<bool(const std::byte*)>& is_stale);

// Like erase_keys(), for maps whose keys begin with a struct image, which identifies a process. In the keys of an LPM
// trie, the struct follows the prefix length.
size_t erase_images(int map_fd, const std::function<bool(const image&)>& is_stale);

// Returns the first `entries` elements of a per-CPU array, each summed over all CPUs. Reads them with one system call.
// Returns zeros on failure.
std::vector<uint64_t> cpu_sums(int map_fd, size_t entries);

// Returns the return addresses of a stack in the stack-trace map `fd`, innermost first. Empty if the id is negative or
// unknown.
std::vector<uint64_t> stack_trace(int fd, int32_t id);

// Waits for the BPF programs that are running now.
class ProgramBarrier {
public:
    ProgramBarrier(); // throws Error

    // Returns when all programs that were running at the call have returned, except sleepable ones. Programs that run
    // afterwards see all earlier writes to maps. Takes a few milliseconds, or tens of milliseconds on large machines.
    // Returns false without waiting if the kernel refuses the map update that causes the wait.
    bool wait() const;

private:
    Fd inner_, outer_;
};

struct BpfLinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

using BpfLink = std::unique_ptr<bpf_link, BpfLinkDeleter>;

// Deleter of Skeleton. S: struct that `bpftool gen skeleton` generates, with static methods open(), load() and
// destroy().
template<class S>
struct SkeletonDeleter {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
};

template<class S>
using Skeleton = std::unique_ptr<S, SkeletonDeleter<S>>;

// Throws Error.
template<class S>
Skeleton<S> open_skeleton()
{
    Skeleton<S> skeleton(S::open(nullptr));
    if (!skeleton)
        throw Error("cannot open the BPF object: " + errno_text(errno));
    return skeleton;
}

// A BPF array with BPF_F_MMAPABLE, mapped into this process.
template<class T>
class SharedArray {
public:
    SharedArray(int fd, size_t elements) : fd_(fd) { map_at_least(elements); }
    ~SharedArray() { unmap(); }
    SharedArray(const SharedArray&) = delete;
    SharedArray& operator=(const SharedArray&) = delete;

    // Maps at least the first `elements` elements. Avoids mapping the whole array, because the kernel populates all
    // mapped pages at once, and they count as resident memory. Throws Error.
    void map_at_least(size_t elements)
    {
        if (elements * sizeof(T) <= bytes_)
            return;
        unmap();
        const size_t bytes = elements * sizeof(T);
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory == MAP_FAILED)
            throw Error("cannot map a BPF array: " + errno_text(errno));
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
