// SPDX-License-Identifier: Apache-2.0
// The map of all allocations and other objects, except physical memory.
#include "memory.hpp"

#include <bit>
#include <cstdlib>
#include <unordered_map>

namespace standin {

constinit std::mutex memory_lock;

namespace {

// Source of the address or handle that the program receives. Objects of all types get their handles from one range,
// like pointers to heap objects.
enum class From { addresses, handles, heap, caller };

struct Row {
    Holding holding;
    From from;
    bool on_device;
    bool owned; // released with its context
};
constexpr Row rows[] = {
    // in the order of Type
    {Holding::device, From::addresses, true, true},      {Holding::managed, From::heap, true, true},
    {Holding::pinned, From::heap, false, true},          {Holding::registered, From::caller, false, true},
    {Holding::pool, From::addresses, true, false},       {Holding::graph, From::addresses, false, false},
    {Holding::array, From::handles, true, true},         {Holding::array, From::handles, true, true},
    {Holding::pool_object, From::handles, false, false}, {Holding::imported, From::handles, false, true},
    {Holding::mapped, From::addresses, false, true},     {Holding::imported, From::addresses, false, true},
    {Holding::imported, From::addresses, false, false},
};
static_assert(std::size(rows) == static_cast<size_t>(Type::pool_pointer) + 1);

struct Block {
    Type type;
    const Context* owner;
    Held held;
    Arena::Range range; // only for addresses and handles from an Arena
};

// Never destroyed: programs may free memory in their own destructors.
auto& blocks = *new std::unordered_map<uintptr_t, Block>;
auto& addresses = *new Arena(0x7a0000000000, 512);
auto& handles = *new Arena(0x200000000000, 256);

const Row& row_of(Type type)
{
    return rows[static_cast<int>(type)];
}

Arena* arena_of(From from)
{
    return from == From::addresses ? &addresses : from == From::handles ? &handles : nullptr;
}

// Requires memory_lock.
int add(Type type, uintptr_t* out, Held held)
{
    const Row& row = row_of(type);
    if (row.from == From::caller && blocks.contains(*out))
        return already_registered;
    if (!charge(held))
        return out_of_memory;
    Block block = {type, current_context(), held, {}};
    if (Arena* arena = arena_of(row.from)) {
        block.range = arena->take(row.from == From::handles ? 1 : held.bytes);
        *out = block.range.address;
    }
    blocks[*out] = block;
    return success;
}

auto remove(std::unordered_map<uintptr_t, Block>::iterator found, Reason reason)
{
    const Block& block = found->second;
    From from = row_of(block.type).from;
    uncharge(block.held, reason);
    if (Arena* arena = arena_of(from))
        arena->give_back(block.range);
    if (from == From::heap)
        free(reinterpret_cast<void*>(found->first));
    return blocks.erase(found);
}

// Requires memory_lock.
auto find(uintptr_t value, Types set)
{
    auto found = blocks.find(value & ~ignored_bits);
    return found != blocks.end() && set & types(found->second.type) ? found : blocks.end();
}

} // namespace

Arena::Range Arena::take(size_t bytes)
{
    bytes = (bytes + grain_ - 1) / grain_ * grain_;
    auto& list = free_[std::bit_width(bytes)];
    for (size_t back = 1; back <= 8 && back <= list.size(); back++)
        if (auto found = list.end() - static_cast<ptrdiff_t>(back); found->bytes >= bytes) {
            Range range = *found;
            list.erase(found);
            return range;
        }
    Range range = {next_, bytes};
    next_ += bytes;
    return range;
}

void Arena::give_back(const Range& range)
{
    free_[std::bit_width(range.bytes)].push_back(range);
}

int allocate(Type type, uintptr_t* out, size_t bytes)
{
    if (int result = begin(Class::alloc))
        return result;
    if (!out || (!bytes && type != Type::pool))
        return invalid_value;
    const Row& row = row_of(type);
    if (row.from == From::caller && !*out)
        return invalid_value;
    void* memory = row.from == From::heap ? calloc(1, bytes) : nullptr;
    if (row.from == From::heap) {
        if (!memory)
            return out_of_memory;
        *out = reinterpret_cast<uintptr_t>(memory);
    }
    std::lock_guard hold(memory_lock);
    int result = add(type, out, {row.holding, bytes, current_context()->device, row.on_device});
    if (result)
        free(memory);
    return result;
}

int release(uintptr_t value, Types set, int unknown)
{
    return locked_call(Class::free, memory_lock, [&]() -> int {
        auto found = find(value, set);
        if (found == blocks.end())
            return unknown;
        remove(found, Reason::freed);
        return success;
    });
}

bool exists(uintptr_t value, Types set)
{
    std::lock_guard hold(memory_lock);
    return find(value, set) != blocks.end();
}

size_t bytes_at(uintptr_t start)
{
    std::lock_guard hold(memory_lock);
    auto found = find(start, ~0u);
    return found == blocks.end() ? 0 : found->second.held.bytes;
}

void release_all(const Context* owner)
{
    std::lock_guard hold(memory_lock);
    for (auto block = blocks.begin(); block != blocks.end();) {
        bool release = block->second.owner == owner && row_of(block->second.type).owned;
        block = release ? remove(block, Reason::context_destroyed) : std::next(block);
    }
}

} // namespace standin
