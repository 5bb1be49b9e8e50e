// SPDX-License-Identifier: Apache-2.0
// Memory: device addresses are made up and never touched, host and managed memory is real, sizes are remembered. What
// a context owns goes with it.
#include "memory.hpp"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace standin;

namespace {

std::mutex lock;

struct Block {
    size_t bytes;
    Context* owner;
    bool real; // managed: the host may touch it
};
auto& blocks()
{
    static auto& map = *new std::map<uintptr_t, Block>; // never destroyed: programs free in their own destructors
    return map;
}
uintptr_t next_address = 0x7e0000000000 - (1ull << 42);
uint64_t used[device_count];

// These three are called under the lock.
uintptr_t take_addresses(size_t bytes)
{
    uintptr_t address = next_address;
    next_address += (bytes + 511) & ~511ull;
    return address;
}

void remember(uintptr_t address, size_t bytes, bool real)
{
    Context* owner = current_context();
    used[owner->device] += bytes;
    blocks()[address] = {bytes, owner, real};
}

auto forget(std::map<uintptr_t, Block>::iterator block)
{
    used[block->second.owner->device] -= block->second.bytes;
    if (block->second.real)
        free(reinterpret_cast<void*>(block->first));
    return blocks().erase(block);
}

int allocate_host(void** out, size_t bytes)
{
    if (int result = begin(Class::alloc))
        return result;
    if (!out || !bytes)
        return invalid_value;
    *out = calloc(1, bytes);
    return *out ? success : out_of_memory;
}

} // namespace

namespace standin {

uintptr_t reserve_addresses(size_t bytes)
{
    std::lock_guard hold(lock);
    return take_addresses(bytes);
}

int allocate(uintptr_t* out, size_t bytes)
{
    if (int result = begin(Class::alloc))
        return result;
    if (!out || !bytes)
        return invalid_value;
    std::lock_guard hold(lock);
    if (bytes > device_memory - used[current_context()->device])
        return out_of_memory;
    remember(*out = take_addresses(bytes), bytes, false);
    return success;
}

int release(uintptr_t address)
{
    if (int result = begin(Class::free))
        return result;
    if (!address)
        return success;
    std::lock_guard hold(lock);
    auto found = blocks().find(address);
    if (found == blocks().end())
        return invalid_value;
    forget(found);
    return success;
}

void release_all(const Context* owner)
{
    std::lock_guard hold(lock);
    for (auto block = blocks().begin(); block != blocks().end();)
        block = block->second.owner == owner ? forget(block) : std::next(block);
}

} // namespace standin

DRIVER(cuMemAlloc_v2)(uintptr_t* out, size_t bytes)
{
    return allocate(out, bytes);
}
DRIVER(cuMemAllocAsync)(uintptr_t* out, size_t bytes, Stream*)
{
    return allocate(out, bytes);
}
DRIVER(cuMemAllocFromPoolAsync)(uintptr_t* out, size_t bytes, void*, Stream*)
{
    return allocate(out, bytes);
}
DRIVER(cuMemFree_v2)(uintptr_t address)
{
    return release(address);
}
DRIVER(cuMemFreeAsync)(uintptr_t address, Stream*)
{
    return release(address);
}
DRIVER(cuMemAllocHost_v2)(void** out, size_t bytes)
{
    return allocate_host(out, bytes);
}
DRIVER(cuMemHostAlloc)(void** out, size_t bytes, unsigned)
{
    return allocate_host(out, bytes);
}
DRIVER(cuMemHostRegister_v2)(void* address, size_t, unsigned)
{
    return address ? begin(Class::alloc) : invalid_value;
}
DRIVER(cuMemHostUnregister)(void* address)
{
    return address ? begin(Class::free) : invalid_value;
}

DRIVER(cuMemAllocPitch_v2)(uintptr_t* out, size_t* pitch, size_t width, size_t height, unsigned)
{
    size_t row = (width + 511) & ~511ull;
    int result = allocate(out, row * height);
    if (!result)
        *pitch = row;
    return result;
}

DRIVER(cuMemFreeHost)(void* address)
{
    if (int result = begin(Class::free))
        return result;
    free(address);
    return success;
}

// The one kind of device memory that exists.
DRIVER(cuMemAllocManaged)(uintptr_t* out, size_t bytes, unsigned)
{
    void* memory = nullptr;
    int result = allocate_host(&memory, bytes);
    if (result)
        return result;
    std::lock_guard hold(lock);
    remember(*out = reinterpret_cast<uintptr_t>(memory), bytes, true);
    return success;
}

DRIVER(cuMemGetInfo_v2)(size_t* available, size_t* total)
{
    if (!current_context())
        return invalid_context;
    std::lock_guard hold(lock);
    *available = device_memory - used[current_context()->device];
    *total = device_memory;
    return success;
}

DRIVER(cuMemGetAddressRange_v2)(uintptr_t* base, size_t* bytes, uintptr_t address)
{
    std::lock_guard hold(lock);
    auto after = blocks().upper_bound(address);
    if (after == blocks().begin())
        return not_found;
    auto [start, block] = *--after;
    if (address >= start + block.bytes)
        return not_found;
    if (base)
        *base = start;
    if (bytes)
        *bytes = block.bytes;
    return success;
}
