// SPDX-License-Identifier: Apache-2.0
#include "attach/probe_layout.hpp"
#include "attach/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr TableEntry memory_table[] = {
    // Memory, driver. "wait-free" marks functions that free memory and may wait for the device.
    {"cuMemAlloc_v2", KIND_ALLOC, "device-memory (out, bytes)"},
    {"cuMemAllocPitch_v2", KIND_ALLOC, "device-memory (out, pitch, bytes, height)"},
    {"cuMemAllocManaged", KIND_ALLOC, "managed-memory (out, bytes)"},
    {"cuMemAllocAsync[_ptsz]", KIND_ALLOC, "async pool-memory (out, bytes, stream)"},
    {"cuMemAllocFromPoolAsync[_ptsz]", KIND_ALLOC, "async pool-memory (out, bytes, _, stream)"},
    {"cuMemHostAlloc", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"cuMemAllocHost_v2", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"cuMemHostRegister", KIND_REGISTER_HOST, "registered-memory (address, bytes)"},
    {"cuMemHostRegister_v2", KIND_REGISTER_HOST, "registered-memory (address, bytes)"},
    {"cuMemFree_v2", KIND_FREE, "device-memory wait-free (address)"},
    {"cuMemFreeAsync[_ptsz]", KIND_FREE, "async pool-memory wait-free (address, stream)"},
    {"cuMemFreeHost", KIND_FREE, "pinned-memory wait-free (address)"},
    {"cuMemHostUnregister", KIND_FREE, "registered-memory wait-free (address)"},
    {"cuArrayCreate_v2", KIND_ALLOC, "array (out, *{0 bytes, 8 height, 16 int format, 20 int channels})"},
    {"cuArray3DCreate_v2", KIND_ALLOC, array_3d},
    {"cuMipmappedArrayCreate", KIND_ALLOC, {array_3d, "(_, _, int levels)"}},
    {"cuArrayDestroy", KIND_FREE, "array (address)"},
    {"cuMipmappedArrayDestroy", KIND_FREE, "array (address)"},
    // Same offsets as in cuMemCreate, because CUmemPoolProps begins with the same fields as CUmemAllocationProp.
    {"cuMemPoolCreate", KIND_ALLOC, "pool (out, *{8 int location, 12 int device})"},
    {"cuMemPoolImportFromShareableHandle", KIND_ALLOC, "pool (out)"},
    {"cuMemPoolDestroy", KIND_FREE, "pool (address)"},
    {"cuMemPoolTrimTo", KIND_TRIM, "pool (handle)"},
    {"cuDeviceGraphMemTrim", KIND_TRIM, "graph-node (int device)"},
    // Memory shared with other processes and APIs. The size of memory that is imported by handle is unknown.
    {"cuIpcOpenMemHandle", KIND_ALLOC, "imported-memory (out)"},
    {"cuIpcOpenMemHandle_v2", KIND_ALLOC, "imported-memory (out)"},
    {"cuIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free (address)"},
    {"cuMemPoolImportPointer", KIND_ALLOC, "imported-memory (out)"},
    {"cuImportExternalMemory", KIND_ALLOC, "external (out, *{24 bytes})"},
    {"cuExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory (out, _, *{8 bytes})"},
    {"cuExternalMemoryGetMappedMipmappedArray", KIND_ALLOC, "array (out)"},
    {"cuDestroyExternalMemory", KIND_FREE, "external (address)"},
    {"cuMemCreate", KIND_PHYSICAL_NEW, "physical (out, bytes, *{8 int location, 12 int device})"},
    {"cuMemImportFromShareableHandle", KIND_PHYSICAL_NEW, "imported-physical (out)"},
    {"cuMulticastCreate", KIND_PHYSICAL_NEW, "multicast (out)"},
    {"cuMemRetainAllocationHandle", KIND_PHYSICAL_RETAIN, "(out)"},
    {"cuMemRelease", KIND_PHYSICAL_FREE, "(handle)"},
    {"cuMemMap", KIND_MAP, "mapped-memory (address, bytes, _, handle)"},
    {"cuMemUnmap", KIND_UNMAP, "mapped-memory (address, bytes)"},
    {"cuMemAddressReserve", KIND_ALLOC, "addresses (out, bytes)"},
    {"cuMemAddressFree", KIND_FREE, "addresses (address)"},
    {"cuGraphAddMemAllocNode", KIND_ALLOC, "graph-node (_, graph, _, _, out+112 *{104 bytes})"},
    {"cuGraphAddMemFreeNode", KIND_FREE, "graph-node (_, graph, _, _, address)"},
    {"cuCtxDestroy", KIND_CONTEXT_DESTROY, "(handle)"},
    {"cuCtxDestroy_v2", KIND_CONTEXT_DESTROY, "(handle)"},
    {"cuDevicePrimaryCtxReset", KIND_CONTEXT_DESTROY, "(int device)"},
    {"cuDevicePrimaryCtxReset_v2", KIND_CONTEXT_DESTROY, "(int device)"},
    {"cuDevicePrimaryCtxRelease", KIND_CONTEXT_RELEASE, "(int device)"},
    {"cuDevicePrimaryCtxRelease_v2", KIND_CONTEXT_RELEASE, "(int device)"},
    {"cuInit", KIND_INIT, ""},

    // Memory, runtime
    {"cudaMalloc", KIND_ALLOC, "device-memory (out, bytes)"},
    {"cudaMallocPitch", KIND_ALLOC, "device-memory (out, pitch, bytes, height)"},
    {"cudaMalloc3D", KIND_ALLOC, "device-memory (out pitch+8, [bytes, height, depth])"},
    {"cudaMallocManaged", KIND_ALLOC, "managed-memory (out, bytes)"},
    {"cudaMallocAsync[_ptsz]", KIND_ALLOC, "async pool-memory (out, bytes, stream)"},
    {"cudaMallocFromPoolAsync[_ptsz]", KIND_ALLOC, "async pool-memory (out, bytes, _, stream)"},
    {"cudaHostAlloc", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"cudaMallocHost", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"cudaHostRegister", KIND_REGISTER_HOST, "registered-memory (address, bytes)"},
    {"cudaFree", KIND_FREE, "device-memory wait-free (address)"},
    {"cudaFreeAsync[_ptsz]", KIND_FREE, "async pool-memory wait-free (address, stream)"},
    {"cudaFreeHost", KIND_FREE, "pinned-memory wait-free (address)"},
    {"cudaHostUnregister", KIND_FREE, "registered-memory wait-free (address)"},
    {"cudaMallocArray", KIND_ALLOC, "array (out, channel_bits, bytes, height)"},
    {"cudaMalloc3DArray", KIND_ALLOC, "array (out, channel_bits, [bytes, height, depth])"},
    {"cudaMallocMipmappedArray", KIND_ALLOC, "array (out, channel_bits, [bytes, height, depth], int levels)"},
    {"cudaFreeArray", KIND_FREE, "array (address)"},
    {"cudaFreeMipmappedArray", KIND_FREE, "array (address)"},
    {"cudaMemPoolCreate", KIND_ALLOC, "pool (out, *{8 int location, 12 int device})"},
    {"cudaMemPoolImportFromShareableHandle", KIND_ALLOC, "pool (out)"},
    {"cudaMemPoolDestroy", KIND_FREE, "pool (address)"},
    {"cudaMemPoolTrimTo", KIND_TRIM, "pool (handle)"},
    {"cudaDeviceGraphMemTrim", KIND_TRIM, "graph-node (int device)"},
    {"cudaIpcOpenMemHandle", KIND_ALLOC, "imported-memory (out)"},
    {"cudaIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free (address)"},
    {"cudaMemPoolImportPointer", KIND_ALLOC, "imported-memory (out)"},
    {"cudaImportExternalMemory", KIND_ALLOC, "external (out, *{24 bytes})"},
    {"cudaExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory (out, _, *{8 bytes})"},
    {"cudaExternalMemoryGetMappedMipmappedArray", KIND_ALLOC, "array (out)"},
    {"cudaDestroyExternalMemory", KIND_FREE, "external (address)"},
    {"cudaGraphAddMemAllocNode", KIND_ALLOC, "graph-node (_, graph, _, _, out+112 *{104 bytes})"},
    {"cudaGraphAddMemFreeNode", KIND_FREE, "graph-node (_, graph, _, _, address)"},
};

} // namespace

std::span<const TableEntry> memory_entries()
{
    return memory_table;
}

} // namespace gpusnoop
