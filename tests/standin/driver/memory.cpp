// SPDX-License-Identifier: Apache-2.0
// Memory: device addresses are made up and never touched, host and managed memory is real, sizes are remembered.
// Copies and fills do nothing but count, so that a new one is a row in a table.
#include "state.hpp"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace standin;

namespace {

std::mutex lock;

struct Block {
    size_t bytes;
    int device;
};
auto& blocks()
{
    static auto& map = *new std::map<uintptr_t, Block>; // never destroyed: programs free in their own destructors
    return map;
}
uintptr_t next_address = 0x7e0000000000 - (1ull << 42);
uint64_t used[device_count];

int allocate(uintptr_t* out, size_t bytes)
{
    if (int result = begin(Class::alloc))
        return result;
    if (!out || !bytes)
        return invalid_value;
    int device = current_context()->device;
    std::lock_guard hold(lock);
    if (bytes > device_memory - used[device])
        return out_of_memory;
    used[device] += bytes;
    blocks()[*out = next_address] = {bytes, device};
    next_address += (bytes + 511) & ~511ull;
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
    used[found->second.device] -= found->second.bytes;
    blocks().erase(found);
    return success;
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
DRIVER(cuMemCreate)(uintptr_t* out, size_t bytes, const void*, uint64_t)
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
DRIVER(cuMemRelease)(uintptr_t handle)
{
    return release(handle);
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

// The host may touch managed memory, so it is the one kind of device memory that exists.
DRIVER(cuMemAllocManaged)(uintptr_t* out, size_t bytes, unsigned)
{
    void* memory = nullptr;
    int result = allocate_host(&memory, bytes);
    if (result)
        return result;
    std::lock_guard hold(lock);
    int device = current_context()->device;
    used[device] += bytes;
    blocks()[*out = reinterpret_cast<uintptr_t>(memory)] = {bytes, device};
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

// Arguments are not read: the SysV convention lets a function ignore what it was passed.
#define COPY(name)                                                                                                     \
    DRIVER(name)()                                                                                                     \
    {                                                                                                                  \
        return begin(Class::copy);                                                                                     \
    }

COPY(cuMemcpy)
COPY(cuMemcpyAsync)
COPY(cuMemcpyHtoD_v2)
COPY(cuMemcpyHtoDAsync_v2)
COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoHAsync_v2)
COPY(cuMemcpyDtoD_v2)
COPY(cuMemcpyDtoDAsync_v2)
COPY(cuMemcpyPeer)
COPY(cuMemcpyPeerAsync)
COPY(cuMemcpyHtoA_v2)
COPY(cuMemcpyHtoAAsync_v2)
COPY(cuMemcpyAtoH_v2)
COPY(cuMemcpyAtoHAsync_v2)
COPY(cuMemcpyDtoA_v2)
COPY(cuMemcpyAtoD_v2)
COPY(cuMemcpyAtoA_v2)
COPY(cuMemcpy2D_v2)
COPY(cuMemcpy2DUnaligned_v2)
COPY(cuMemcpy2DAsync_v2)
COPY(cuMemcpy3D_v2)
COPY(cuMemcpy3DAsync_v2)
COPY(cuMemcpy3DPeer)
COPY(cuMemcpy3DPeerAsync)
COPY(cuMemcpyBatchAsync)
COPY(cuMemcpyBatchAsync_v2)
COPY(cuMemcpy3DBatchAsync)
COPY(cuMemcpy3DBatchAsync_v2)
COPY(cuMemPrefetchAsync)
COPY(cuMemPrefetchAsync_v2)
COPY(cuMemsetD8_v2)
COPY(cuMemsetD16_v2)
COPY(cuMemsetD32_v2)
COPY(cuMemsetD8Async)
COPY(cuMemsetD16Async)
COPY(cuMemsetD32Async)
COPY(cuMemsetD2D8_v2)
COPY(cuMemsetD2D16_v2)
COPY(cuMemsetD2D32_v2)
COPY(cuMemsetD2D8Async)
COPY(cuMemsetD2D16Async)
COPY(cuMemsetD2D32Async)
