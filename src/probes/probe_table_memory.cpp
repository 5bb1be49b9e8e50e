// SPDX-License-Identifier: Apache-2.0
#include "probes/probe_table.hpp"

namespace gpusnoop {
namespace {

// CUDA_ARRAY3D_DESCRIPTOR
constexpr const char* array_3d =
    "array out:rdi bytes:rsi[0] height:rsi[8] depth:rsi[16] format:rsi[24.l] channels:rsi[28.l]";

constexpr TableEntry table[] = {
    // Memory. Freeing some of it may wait for the device.
    {"cuMemAlloc_v2", KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"cuMemAllocPitch_v2", KIND_ALLOC, "device-memory out:rdi pitch:rsi bytes:rdx height:rcx"},
    {"cuMemAllocManaged", KIND_ALLOC, "managed-memory out:rdi bytes:rsi"},
    {"cuMemAllocAsync[_ptsz]", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rdx"},
    {"cuMemAllocFromPoolAsync[_ptsz]", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rcx"},
    {"cuMemHostAlloc", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cuMemAllocHost_v2", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cuMemHostRegister", KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"cuMemHostRegister_v2", KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"cuMemFree_v2", KIND_FREE, "device-memory wait-free address:rdi"},
    {"cuMemFreeAsync[_ptsz]", KIND_FREE, "async pool-memory wait-free address:rdi stream:rsi"},
    {"cuMemFreeHost", KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"cuMemHostUnregister", KIND_FREE, "registered-memory wait-free address:rdi"},
    {"cuArrayCreate_v2", KIND_ALLOC, "array out:rdi bytes:rsi[0] height:rsi[8] format:rsi[16.l] channels:rsi[20.l]"},
    {"cuArray3DCreate_v2", KIND_ALLOC, array_3d},
    {"cuMipmappedArrayCreate", KIND_ALLOC, {array_3d, "levels:rdx.l"}},
    {"cuArrayDestroy", KIND_FREE, "array address:rdi"},
    {"cuMipmappedArrayDestroy", KIND_FREE, "array address:rdi"},
    // CUmemAllocationProp and CUmemPoolProps begin alike.
    {"cuMemPoolCreate", KIND_ALLOC, "pool out:rdi location:rsi[8.l] device:rsi[12.l]"},
    {"cuMemPoolImportFromShareableHandle", KIND_ALLOC, "pool out:rdi"},
    {"cuMemPoolDestroy", KIND_FREE, "pool address:rdi"},
    {"cuMemPoolTrimTo", KIND_TRIM, "pool handle:rdi"},
    {"cuDeviceGraphMemTrim", KIND_TRIM, "graph-node device:rdi.l"},
    // Somebody else's memory: what is imported by a handle does not tell its size.
    {"cuIpcOpenMemHandle", KIND_ALLOC, "imported-memory out:rdi"},
    {"cuIpcOpenMemHandle_v2", KIND_ALLOC, "imported-memory out:rdi"},
    {"cuIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free address:rdi"},
    {"cuMemPoolImportPointer", KIND_ALLOC, "imported-memory out:rdi"},
    {"cuImportExternalMemory", KIND_ALLOC, "external out:rdi bytes:rsi[24]"},
    {"cuExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory out:rdi bytes:rdx[8]"},
    {"cuExternalMemoryGetMappedMipmappedArray", KIND_ALLOC, "array out:rdi"},
    {"cuDestroyExternalMemory", KIND_FREE, "external address:rdi"},
    {"cuMemCreate", KIND_PHYSICAL_NEW, "physical out:rdi bytes:rsi location:rdx[8.l] device:rdx[12.l]"},
    {"cuMemImportFromShareableHandle", KIND_PHYSICAL_NEW, "imported-physical out:rdi"},
    {"cuMulticastCreate", KIND_PHYSICAL_NEW, "multicast out:rdi"},
    {"cuMemRetainAllocationHandle", KIND_PHYSICAL_HOLD, "out:rdi"},
    {"cuMemRelease", KIND_PHYSICAL_FREE, "handle:rdi"},
    {"cuMemMap", KIND_MAP, "mapped-memory address:rdi bytes:rsi handle:rcx"},
    {"cuMemUnmap", KIND_UNMAP, "mapped-memory address:rdi bytes:rsi"},
    {"cuMemAddressReserve", KIND_ALLOC, "addresses out:rdi bytes:rsi"},
    {"cuMemAddressFree", KIND_FREE, "addresses address:rdi"},
    {"cuGraphAddMemAllocNode", KIND_ALLOC, "graph-node graph:rsi out:r8+112 bytes:r8[104]"},
    {"cuGraphAddMemFreeNode", KIND_FREE, "graph-node graph:rsi address:r8"},
    {"cuCtxDestroy", KIND_MEMORY_GONE, "handle:rdi"},
    {"cuCtxDestroy_v2", KIND_MEMORY_GONE, "handle:rdi"},
    {"cuDevicePrimaryCtxReset", KIND_MEMORY_GONE, "device:rdi.l"},
    {"cuDevicePrimaryCtxReset_v2", KIND_MEMORY_GONE, "device:rdi.l"},
    {"cuDevicePrimaryCtxRelease", KIND_CONTEXT_LET_GO, "device:rdi.l"},
    {"cuDevicePrimaryCtxRelease_v2", KIND_CONTEXT_LET_GO, "device:rdi.l"},
    {"cuInit", KIND_INIT, ""},

    // Memory, runtime
    {"cudaMalloc", KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"cudaMallocPitch", KIND_ALLOC, "device-memory out:rdi pitch:rsi bytes:rdx height:rcx"},
    {"cudaMalloc3D", KIND_ALLOC, "large:1x3 device-memory out:rdi pitch:rdi+8 bytes:s0 height:s1 depth:s2"},
    {"cudaMallocManaged", KIND_ALLOC, "managed-memory out:rdi bytes:rsi"},
    {"cudaMallocAsync[_ptsz]", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rdx"},
    {"cudaMallocFromPoolAsync[_ptsz]", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rcx"},
    {"cudaHostAlloc", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cudaMallocHost", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cudaHostRegister", KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"cudaFree", KIND_FREE, "device-memory wait-free address:rdi"},
    {"cudaFreeAsync[_ptsz]", KIND_FREE, "async pool-memory wait-free address:rdi stream:rsi"},
    {"cudaFreeHost", KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"cudaHostUnregister", KIND_FREE, "registered-memory wait-free address:rdi"},
    {"cudaMallocArray", KIND_ALLOC, "array out:rdi channel_bits:rsi bytes:rdx height:rcx"},
    {"cudaMalloc3DArray", KIND_ALLOC, "large:2x3 array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2"},
    {"cudaMallocMipmappedArray", KIND_ALLOC,
     "large:2x3 array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2 levels:rdx.l"},
    {"cudaFreeArray", KIND_FREE, "array address:rdi"},
    {"cudaFreeMipmappedArray", KIND_FREE, "array address:rdi"},
    {"cudaMemPoolCreate", KIND_ALLOC, "pool out:rdi location:rsi[8.l] device:rsi[12.l]"},
    {"cudaMemPoolImportFromShareableHandle", KIND_ALLOC, "pool out:rdi"},
    {"cudaMemPoolDestroy", KIND_FREE, "pool address:rdi"},
    {"cudaMemPoolTrimTo", KIND_TRIM, "pool handle:rdi"},
    {"cudaDeviceGraphMemTrim", KIND_TRIM, "graph-node device:rdi.l"},
    {"cudaIpcOpenMemHandle", KIND_ALLOC, "imported-memory out:rdi"},
    {"cudaIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free address:rdi"},
    {"cudaMemPoolImportPointer", KIND_ALLOC, "imported-memory out:rdi"},
    {"cudaImportExternalMemory", KIND_ALLOC, "external out:rdi bytes:rsi[24]"},
    {"cudaExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory out:rdi bytes:rdx[8]"},
    {"cudaExternalMemoryGetMappedMipmappedArray", KIND_ALLOC, "array out:rdi"},
    {"cudaDestroyExternalMemory", KIND_FREE, "external address:rdi"},
    {"cudaGraphAddMemAllocNode", KIND_ALLOC, "graph-node graph:rsi out:r8+112 bytes:r8[104]"},
    {"cudaGraphAddMemFreeNode", KIND_FREE, "graph-node graph:rsi address:r8"},
};

} // namespace

std::span<const TableEntry> memory_entries()
{
    return table;
}

} // namespace gpusnoop
