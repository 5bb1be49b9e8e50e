// SPDX-License-Identifier: Apache-2.0
// Memory and the objects that stand for it. Everything is in one map by address or handle, with its type; a row of a
// table says what a type means. Physical memory, which is counted by references, is in mapping.cpp.
#pragma once

#include "ledger.hpp"

#include <mutex>
#include <vector>

namespace standin {

extern std::mutex memory_lock; // over the map, the addresses and the ledger

// Made-up addresses. What was given back last is taken first, so that programs meet the same addresses again and again.
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
    std::vector<Range> free_[64]; // by the order of magnitude
};

enum class Type {
    linear,
    managed,
    pinned,
    registered,
    ordered,  // of a pool
    recorded, // of a graph
    array,
    mipmapped,
    pool,
    external,
    buffer, // of external memory
    ipc,
    pool_pointer,
};
using Types = unsigned; // a set
template<class... T>
constexpr Types types(T... list)
{
    return (0u | ... | (1u << static_cast<unsigned>(list)));
}

// The whole of a call that makes one, counted as an allocation. `out` is also an argument where memory is registered.
int allocate(Type, uintptr_t* out, size_t bytes);
// The same for one that ends it, if it is of one of these types; `unknown` is what the call returns if it is not.
int release(uintptr_t, Types, int unknown = invalid_value);
bool exists(uintptr_t, Types);
size_t bytes_at(uintptr_t start); // 0: nothing begins there
void release_all(const Context*); // the context is gone; counts as nothing

} // namespace standin
