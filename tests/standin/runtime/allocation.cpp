// SPDX-License-Identifier: Apache-2.0
// Functions that allocate with a descriptor structure, or create arrays, pools and imported memory. Each makes one
// driver call.
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

STANDIN_SAME(MemPoolCreate, (void** out, const PoolProperties* properties), out, properties)
STANDIN_SAME(MemPoolDestroy, (void* pool), pool)
STANDIN_SAME(MemPoolTrimTo, (void* pool, size_t bytes), pool, bytes)
STANDIN_SAME(MemPoolExportPointer, (Shared * out, void* address), out, address)
STANDIN_SAME(MemPoolImportPointer, (void** out, void* pool, const Shared* from), out, pool, from)
STANDIN_SAME(IpcGetMemHandle, (Shared * out, void* address), out, address)
STANDIN_SAME(IpcOpenMemHandle, (void** out, Shared handle, unsigned flags), out, handle, flags)
STANDIN_SAME(IpcCloseMemHandle, (void* address), address)

// The runtime's structures are shorter than the driver's.
STANDIN_SAME(ImportExternalMemory, (void** out, const ExternalMemory* from), out,
             at(ExternalMemory{from->type, {from->handle[0], from->handle[1]}, from->bytes, from->flags, {}}))
STANDIN_SAME(ExternalMemoryGetMappedBuffer, (void** out, void* memory, const ExternalBuffer* part), out, memory,
             at(ExternalBuffer{part->offset, part->bytes, part->flags, {}}))
STANDIN_SAME(DestroyExternalMemory, (void* memory), memory)

STANDIN_SAME(DeviceGraphMemTrim, (int device), device)
