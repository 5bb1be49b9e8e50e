// SPDX-License-Identifier: Apache-2.0
// Linear device memory, and host memory. Device addresses are arbitrary numbers that are never accessed. Host and
// managed memory is real memory.
#include "memory.hpp"

#include "../abi_allocation.hpp"
#include "capture.hpp"

using namespace standin;

namespace {

constexpr Types freed_by_address =
    types(Type::linear, Type::managed, Type::ordered, Type::recorded, Type::buffer, Type::pool_pointer);

int free_address(uintptr_t address)
{
    return address ? release(address, freed_by_address) : begin(Class::free);
}

// Counts a call that fails because its capture is invalidated, and returns its result.
int capture_refusal(Class c)
{
    int result = begin(c);
    return result ? result : capture_invalidated;
}

// During a capture, no memory is allocated, but the call returns an address for use in the graph's nodes.
int allocate_ordered(uintptr_t* out, size_t bytes, Stream* stream)
{
    bool recorded = capturing(stream);
    if (recorded && invalidated(stream))
        return capture_refusal(Class::alloc);
    int result = allocate(recorded ? Type::recorded : Type::ordered, out, bytes);
    return recorded && !result ? record(stream, {.type = NodeType::alloc}) : result;
}

int allocate_host(uintptr_t* out, size_t bytes)
{
    return allocate(Type::pinned, out, bytes);
}

} // namespace

DRIVER(cuMemAlloc_v2)(uintptr_t* out, size_t bytes)
{
    return allocate(Type::linear, out, bytes);
}
DRIVER(cuMemAllocAsync)(uintptr_t* out, size_t bytes, Stream* stream)
{
    return allocate_ordered(out, bytes, stream);
}
DRIVER(cuMemAllocFromPoolAsync)(uintptr_t* out, size_t bytes, void*, Stream* stream)
{
    return allocate_ordered(out, bytes, stream);
}
DRIVER(cuMemFree_v2)(uintptr_t address)
{
    return free_address(address);
}

DRIVER(cuMemFreeAsync)(uintptr_t address, Stream* stream)
{
    if (!capturing(stream))
        return free_address(address);
    if (invalidated(stream))
        return capture_refusal(Class::free);
    int result = release(address, types(Type::recorded));
    return result ? result : record(stream, {.type = NodeType::free});
}

DRIVER(cuMemAllocPitch_v2)(uintptr_t* out, size_t* pitch, size_t width, size_t height, unsigned)
{
    size_t row = (width + 511) & ~511ull;
    int result = allocate(Type::linear, out, row * height);
    if (!result)
        *pitch = row;
    return result;
}

// Managed memory is the only device memory that the stand-in really allocates, because host code accesses it.
DRIVER(cuMemAllocManaged)(uintptr_t* out, size_t bytes, unsigned)
{
    return allocate(Type::managed, out, bytes);
}

DRIVER(cuMemAllocHost_v2)(uintptr_t* out, size_t bytes)
{
    return allocate_host(out, bytes);
}
DRIVER(cuMemHostAlloc)(uintptr_t* out, size_t bytes, unsigned)
{
    return allocate_host(out, bytes);
}
DRIVER(cuMemFreeHost)(uintptr_t address)
{
    return address ? release(address, types(Type::pinned)) : begin(Class::free);
}
DRIVER(cuMemHostRegister_v2)(uintptr_t address, size_t bytes, unsigned)
{
    return allocate(Type::registered, &address, bytes);
}
DRIVER(cuMemHostUnregister)(uintptr_t address)
{
    return release(address, types(Type::registered), not_registered);
}

DRIVER(cuGraphAddMemAllocNode)(Node** out, Handle graph, const void*, size_t, AllocationNode* node)
{
    int result = allocate(Type::recorded, graph && node ? &node->address : nullptr, node ? node->bytes : 0);
    return result ? result : add_node(out, graph, {.type = NodeType::alloc});
}

DRIVER(cuGraphAddMemFreeNode)(Node** out, Handle graph, const void*, size_t, uintptr_t address)
{
    int result = release(graph ? address : 0, types(Type::recorded));
    return result ? result : add_node(out, graph, {.type = NodeType::free});
}

DRIVER(cuDeviceGraphMemTrim)(int device)
{
    return device < 0 || device >= device_count ? invalid_device : success;
}
