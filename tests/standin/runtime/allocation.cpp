// SPDX-License-Identifier: Apache-2.0
// Functions that allocate with a descriptor structure, or create arrays, pools and imported memory. Each makes one
// driver call.
#include "../abi_allocation.hpp"
#include "runtime.hpp"

using namespace standin;

namespace {

// Converts to the driver's CUarray_format; assumes that all channels have the same format.
unsigned format_of(const ChannelFormat& c)
{
    static constexpr unsigned formats[3][3] = {{0x08, 0x09, 0x0a}, {0x01, 0x02, 0x03}, {0x00, 0x10, 0x20}};
    return formats[c.kind][c.x == 8 ? 0 : c.x == 16 ? 1 : 2];
}

Array3DDescriptor describe(const ChannelFormat& c, const Extent& extent, unsigned flags)
{
    unsigned channels = (c.x > 0) + (c.y > 0) + (c.z > 0) + (c.w > 0);
    return {extent.width, extent.height, extent.depth, format_of(c), channels, flags};
}

// Returns the address of a temporary, which is valid until the end of the full expression.
template<class T>
T* at(T&& value)
{
    return &value;
}

} // namespace

RUNTIME(cudaMalloc3D)(PitchedPointer* out, Extent extent)
{
    *out = {nullptr, 0, extent.width, extent.height};
    STANDIN_FORWARD(cuMemAllocPitch, legacy, &out->pointer, &out->pitch, extent.width, extent.height * extent.depth, 4);
}

STANDIN_ONE(cudaMallocArray, (void** out, const ChannelFormat* format, size_t width, size_t height, unsigned flags),
            cuArray3DCreate, out, at(describe(*format, {width, height, 0}, flags)))
STANDIN_ONE(cudaMalloc3DArray, (void** out, const ChannelFormat* format, Extent extent, unsigned flags),
            cuArray3DCreate, out, at(describe(*format, extent, flags)))
STANDIN_ONE(cudaMallocMipmappedArray,
            (void** out, const ChannelFormat* format, Extent extent, unsigned levels, unsigned flags),
            cuMipmappedArrayCreate, out, at(describe(*format, extent, flags)), levels)
STANDIN_ONE(cudaFreeArray, (void* array), cuArrayDestroy, array)
STANDIN_ONE(cudaFreeMipmappedArray, (void* array), cuMipmappedArrayDestroy, array)

STANDIN_ONE(cudaMemPoolCreate, (void** out, const PoolProperties* properties), cuMemPoolCreate, out, properties)
STANDIN_ONE(cudaMemPoolDestroy, (void* pool), cuMemPoolDestroy, pool)
STANDIN_ONE(cudaMemPoolTrimTo, (void* pool, size_t bytes), cuMemPoolTrimTo, pool, bytes)
STANDIN_ONE(cudaMemPoolSetAttribute, (void* pool, int attribute, void* value), cuMemPoolSetAttribute, pool, attribute,
            value)
STANDIN_ONE(cudaMemPoolExportPointer, (Shared * out, void* address), cuMemPoolExportPointer, out, address)
STANDIN_ONE(cudaMemPoolImportPointer, (void** out, void* pool, const Shared* from), cuMemPoolImportPointer, out, pool,
            from)
STANDIN_ONE(cudaIpcGetMemHandle, (Shared * out, void* address), cuIpcGetMemHandle, out, address)
STANDIN_ONE(cudaIpcOpenMemHandle, (void** out, Shared handle, unsigned flags), cuIpcOpenMemHandle, out, handle, flags)
STANDIN_ONE(cudaIpcCloseMemHandle, (void* address), cuIpcCloseMemHandle, address)

// The runtime's structures are shorter than the driver's.
STANDIN_ONE(cudaImportExternalMemory, (void** out, const ExternalMemory* from), cuImportExternalMemory, out,
            at(ExternalMemory{from->type, {from->handle[0], from->handle[1]}, from->bytes, from->flags, {}}))
STANDIN_ONE(cudaExternalMemoryGetMappedBuffer, (void** out, void* memory, const ExternalBuffer* part),
            cuExternalMemoryGetMappedBuffer, out, memory,
            at(ExternalBuffer{part->offset, part->bytes, part->flags, {}}))
STANDIN_ONE(cudaDestroyExternalMemory, (void* memory), cuDestroyExternalMemory, memory)

STANDIN_ONE(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim, device)
