// SPDX-License-Identifier: Apache-2.0
// Allocations and other objects: one map by address or handle, and a table with the properties of each type. Physical
// memory, which is reference-counted, is in mapping.cpp.
#pragma once

#include "ledger.hpp"

#include <mutex>
#include <vector>

namespace standin {

extern std::mutex memory_lock; // protects the map, the arenas and the ledger

// Source of addresses without memory behind them. It reuses the range that was freed last, so that programs often
// receive the same addresses again.
class Arena {
public:
    struct Range {
        uintptr_t address;
        size_t bytes;
    };
    constexpr Arena(uintptr_t start, size_t grain) : next_(start), grain_(grain) {}
    Range take(size_t bytes);
    void give_back(const Range&);

private:
    uintptr_t next_;
    size_t grain_;
    std::vector<Range> free_[64]; // free ranges, by bit width of their size
};

enum class Type {
    linear,
    managed,
    pinned,
    registered,
    ordered,  // stream-ordered, from a pool
    recorded, // allocated by a graph node or during a capture
    array,
    mipmapped,
    pool,
    external,
    buffer, // mapped from external memory
    ipc,
    pool_pointer,
};
using Types = unsigned; // a set of Type, one bit each
template<class... T>
constexpr Types types(T... list)
{
    return (0u | ... | (1u << static_cast<unsigned>(list)));
}

// Implements an API call that allocates, and counts the call. If memory is registered, `*out` is also an input.
int allocate(Type, uintptr_t* out, size_t bytes);
// Implements an API call that frees an address or handle of one of the given types, and counts the call. Returns
// `unknown` if there is no such address or handle.
int release(uintptr_t, Types, int unknown = invalid_value);
bool exists(uintptr_t, Types);
size_t bytes_at(uintptr_t start); // 0: no memory starts there
void release_all(const Context*); // for a destroyed context; not counted as calls

} // namespace standin
