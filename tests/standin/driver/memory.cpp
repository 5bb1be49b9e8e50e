// SPDX-License-Identifier: Apache-2.0
// Linear device memory, arrays, and host memory. Device addresses and arrays are arbitrary numbers that are never
// accessed. Host and managed memory is real memory.
#include "memory.hpp"

#include "capture.hpp"

using namespace standin;

namespace {

constexpr Types freed_by_address =
    types(Type::linear, Type::managed, Type::ordered, Type::recorded, Type::buffer, Type::pool_pointer);

// Frees memory of one of these types; the address may be null.
int free_address(uintptr_t address, Types set)
{
    return address ? release(address, set) : begin(Class::free);
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

} // namespace

RETURNS(cuMemAlloc_v2, (uintptr_t * out, size_t bytes), allocate(Type::linear, out, bytes))
RETURNS(cuMemAllocAsync, (uintptr_t * out, size_t bytes, Stream* stream), allocate_ordered(out, bytes, stream))
RETURNS(cuMemAllocFromPoolAsync, (uintptr_t * out, size_t bytes, void*, Stream* stream),
        allocate_ordered(out, bytes, stream))
RETURNS(cuMemFree_v2, (uintptr_t address), free_address(address, freed_by_address))

DRIVER(cuMemFreeAsync)(uintptr_t address, Stream* stream)
{
    if (!capturing(stream))
        return free_address(address, freed_by_address);
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
RETURNS(cuMemAllocManaged, (uintptr_t * out, size_t bytes, unsigned), allocate(Type::managed, out, bytes))
RETURNS(cuMemAllocHost_v2, (uintptr_t * out, size_t bytes), allocate(Type::pinned, out, bytes))
RETURNS(cuMemHostAlloc, (uintptr_t * out, size_t bytes, unsigned), allocate(Type::pinned, out, bytes))
RETURNS(cuMemFreeHost, (uintptr_t address), free_address(address, types(Type::pinned)))
RETURNS(cuMemHostRegister_v2, (uintptr_t address, size_t bytes, unsigned), allocate(Type::registered, &address, bytes))
RETURNS(cuMemHostUnregister, (uintptr_t address), release(address, types(Type::registered), not_registered))

RETURNS(cuArrayCreate_v2, (uintptr_t * out, const ArrayDescriptor* d),
        allocate(Type::array, out, bytes_of({d->width, d->height, 0, d->format, d->channels, 0})))
RETURNS(cuArray3DCreate_v2, (uintptr_t * out, const Array3DDescriptor* d), allocate(Type::array, out, bytes_of(*d)))
RETURNS(cuMipmappedArrayCreate, (uintptr_t * out, const Array3DDescriptor* d, unsigned levels),
        allocate(Type::mipmapped, out, bytes_of(*d, levels)))
RETURNS(cuArrayDestroy, (uintptr_t handle), release(handle, types(Type::array), invalid_handle))
RETURNS(cuMipmappedArrayDestroy, (uintptr_t handle), release(handle, types(Type::mipmapped), invalid_handle))

DRIVER(cuGraphAddMemAllocNode)(Node** out, Handle graph, const void*, size_t, AllocationNode* node)
{
    int result = allocate(Type::recorded, graph ? &node->address : nullptr, node->bytes);
    return result ? result : add_node(out, graph, {.type = NodeType::alloc});
}

DRIVER(cuGraphAddMemFreeNode)(Node** out, Handle graph, const void*, size_t, uintptr_t address)
{
    int result = release(graph ? address : 0, types(Type::recorded));
    return result ? result : add_node(out, graph, {.type = NodeType::free});
}
