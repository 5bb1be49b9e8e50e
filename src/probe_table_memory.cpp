// SPDX-License-Identifier: Apache-2.0
#include "probe_table.hpp"

namespace gpusnoop {
namespace {

// CUDA_ARRAY3D_DESCRIPTOR
constexpr const char* array_3d =
    "array out:rdi bytes:rsi[0] height:rsi[8] depth:rsi[16] format:rsi[24.l] channels:rsi[28.l]";

constexpr TableEntry table[] = {
    // Memory. Freeing some of it may wait for the device.
    {"cuMemAlloc_v2", single, driver, any_runtime, KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"cuMemAllocPitch_v2", single, driver, any_runtime, KIND_ALLOC,
     "device-memory out:rdi pitch:rsi bytes:rdx height:rcx"},
    {"cuMemAllocManaged", single, driver, any_runtime, KIND_ALLOC, "managed-memory out:rdi bytes:rsi"},
    {"cuMemAllocAsync", ptsz, driver, any_runtime, KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rdx"},
    {"cuMemAllocFromPoolAsync", ptsz, driver, any_runtime, KIND_ALLOC,
     "async pool-memory out:rdi bytes:rsi stream:rcx"},
    {"cuMemHostAlloc", single, driver, any_runtime, KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cuMemAllocHost_v2", single, driver, any_runtime, KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cuMemHostRegister", single, driver, any_runtime, KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"cuMemHostRegister_v2", single, driver, any_runtime, KIND_REGISTER_HOST,
     "registered-memory address:rdi bytes:rsi"},
    {"cuMemFree_v2", single, driver, any_runtime, KIND_FREE, "device-memory wait-free address:rdi"},
    {"cuMemFreeAsync", ptsz, driver, any_runtime, KIND_FREE, "async pool-memory wait-free address:rdi stream:rsi"},
    {"cuMemFreeHost", single, driver, any_runtime, KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"cuMemHostUnregister", single, driver, any_runtime, KIND_FREE, "registered-memory wait-free address:rdi"},
    {"cuArrayCreate_v2", single, driver, any_runtime, KIND_ALLOC,
     "array out:rdi bytes:rsi[0] height:rsi[8] format:rsi[16.l] channels:rsi[20.l]"},
    {"cuArray3DCreate_v2", single, driver, any_runtime, KIND_ALLOC, array_3d},
    {"cuMipmappedArrayCreate", single, driver, any_runtime, KIND_ALLOC, {array_3d, "levels:rdx.l"}},
    {"cuArrayDestroy", single, driver, any_runtime, KIND_FREE, "array address:rdi"},
    {"cuMipmappedArrayDestroy", single, driver, any_runtime, KIND_FREE, "array address:rdi"},
    // CUmemAllocationProp and CUmemPoolProps begin alike.
    {"cuMemPoolCreate", single, driver, any_runtime, KIND_ALLOC, "pool out:rdi location:rsi[8.l] device:rsi[12.l]"},
    {"cuMemPoolImportFromShareableHandle", single, driver, any_runtime, KIND_ALLOC, "pool out:rdi"},
    {"cuMemPoolDestroy", single, driver, any_runtime, KIND_FREE, "pool address:rdi"},
    {"cuMemPoolTrimTo", single, driver, any_runtime, KIND_TRIM, "pool handle:rdi"},
    {"cuDeviceGraphMemTrim", single, driver, any_runtime, KIND_TRIM, "graph-node device:rdi.l"},
    // Somebody else's memory: what is imported by a handle does not tell its size.
    {"cuIpcOpenMemHandle", single, driver, any_runtime, KIND_ALLOC, "imported-memory out:rdi"},
    {"cuIpcOpenMemHandle_v2", single, driver, any_runtime, KIND_ALLOC, "imported-memory out:rdi"},
    {"cuIpcCloseMemHandle", single, driver, any_runtime, KIND_FREE, "imported-memory wait-free address:rdi"},
    {"cuMemPoolImportPointer", single, driver, any_runtime, KIND_ALLOC, "imported-memory out:rdi"},
    {"cuImportExternalMemory", single, driver, any_runtime, KIND_ALLOC, "external out:rdi bytes:rsi[24]"},
    {"cuExternalMemoryGetMappedBuffer", single, driver, any_runtime, KIND_ALLOC, "mapped-memory out:rdi bytes:rdx[8]"},
    {"cuExternalMemoryGetMappedMipmappedArray", single, driver, any_runtime, KIND_ALLOC, "array out:rdi"},
    {"cuDestroyExternalMemory", single, driver, any_runtime, KIND_FREE, "external address:rdi"},
    {"cuMemCreate", single, driver, any_runtime, KIND_PHYSICAL_NEW,
     "physical out:rdi bytes:rsi location:rdx[8.l] device:rdx[12.l]"},
    {"cuMemImportFromShareableHandle", single, driver, any_runtime, KIND_PHYSICAL_NEW, "imported-physical out:rdi"},
    {"cuMulticastCreate", single, driver, any_runtime, KIND_PHYSICAL_NEW, "multicast out:rdi"},
    {"cuMemRetainAllocationHandle", single, driver, any_runtime, KIND_PHYSICAL_HOLD, "out:rdi"},
    {"cuMemRelease", single, driver, any_runtime, KIND_PHYSICAL_FREE, "handle:rdi"},
    {"cuMemMap", single, driver, any_runtime, KIND_MAP, "mapped-memory address:rdi bytes:rsi handle:rcx"},
    {"cuMemUnmap", single, driver, any_runtime, KIND_UNMAP, "mapped-memory address:rdi bytes:rsi"},
    {"cuMemAddressReserve", single, driver, any_runtime, KIND_ALLOC, "addresses out:rdi bytes:rsi"},
    {"cuMemAddressFree", single, driver, any_runtime, KIND_FREE, "addresses address:rdi"},
    {"cuGraphAddMemAllocNode", single, driver, any_runtime, KIND_ALLOC,
     "graph-node graph:rsi out:r8+112 bytes:r8[104]"},
    {"cuGraphAddMemFreeNode", single, driver, any_runtime, KIND_FREE, "graph-node graph:rsi address:r8"},
    {"cuCtxDestroy", single, driver, any_runtime, KIND_MEMORY_GONE, "handle:rdi"},
    {"cuCtxDestroy_v2", single, driver, any_runtime, KIND_MEMORY_GONE, "handle:rdi"},
    {"cuDevicePrimaryCtxReset", single, driver, any_runtime, KIND_MEMORY_GONE, "device:rdi.l"},
    {"cuDevicePrimaryCtxReset_v2", single, driver, any_runtime, KIND_MEMORY_GONE, "device:rdi.l"},
    {"cuDevicePrimaryCtxRelease", single, driver, any_runtime, KIND_CONTEXT_LET_GO, "device:rdi.l"},
    {"cuDevicePrimaryCtxRelease_v2", single, driver, any_runtime, KIND_CONTEXT_LET_GO, "device:rdi.l"},
    {"cuInit", single, driver, any_runtime, KIND_INIT, ""},

    // Memory, runtime
    {"cudaMalloc", single, runtime, any_runtime, KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"cudaMallocPitch", single, runtime, any_runtime, KIND_ALLOC,
     "device-memory out:rdi pitch:rsi bytes:rdx height:rcx"},
    {"cudaMalloc3D", single, runtime, any_runtime, KIND_ALLOC,
     "device-memory out:rdi pitch:rdi+8 bytes:s0 height:s1 depth:s2"},
    {"cudaMallocManaged", single, runtime, any_runtime, KIND_ALLOC, "managed-memory out:rdi bytes:rsi"},
    {"cudaMallocAsync", ptsz, runtime, any_runtime, KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rdx"},
    {"cudaMallocFromPoolAsync", ptsz, runtime, any_runtime, KIND_ALLOC,
     "async pool-memory out:rdi bytes:rsi stream:rcx"},
    {"cudaHostAlloc", single, runtime, any_runtime, KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cudaMallocHost", single, runtime, any_runtime, KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"cudaHostRegister", single, runtime, any_runtime, KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"cudaFree", single, runtime, any_runtime, KIND_FREE, "device-memory wait-free address:rdi"},
    {"cudaFreeAsync", ptsz, runtime, any_runtime, KIND_FREE, "async pool-memory wait-free address:rdi stream:rsi"},
    {"cudaFreeHost", single, runtime, any_runtime, KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"cudaHostUnregister", single, runtime, any_runtime, KIND_FREE, "registered-memory wait-free address:rdi"},
    {"cudaMallocArray", single, runtime, any_runtime, KIND_ALLOC,
     "array out:rdi channel_bits:rsi bytes:rdx height:rcx"},
    {"cudaMalloc3DArray", single, runtime, any_runtime, KIND_ALLOC,
     "array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2"},
    {"cudaMallocMipmappedArray", single, runtime, any_runtime, KIND_ALLOC,
     "array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2 levels:rdx.l"},
    {"cudaFreeArray", single, runtime, any_runtime, KIND_FREE, "array address:rdi"},
    {"cudaFreeMipmappedArray", single, runtime, any_runtime, KIND_FREE, "array address:rdi"},
    {"cudaMemPoolCreate", single, runtime, any_runtime, KIND_ALLOC, "pool out:rdi location:rsi[8.l] device:rsi[12.l]"},
    {"cudaMemPoolImportFromShareableHandle", single, runtime, any_runtime, KIND_ALLOC, "pool out:rdi"},
    {"cudaMemPoolDestroy", single, runtime, any_runtime, KIND_FREE, "pool address:rdi"},
    {"cudaMemPoolTrimTo", single, runtime, any_runtime, KIND_TRIM, "pool handle:rdi"},
    {"cudaDeviceGraphMemTrim", single, runtime, any_runtime, KIND_TRIM, "graph-node device:rdi.l"},
    {"cudaIpcOpenMemHandle", single, runtime, any_runtime, KIND_ALLOC, "imported-memory out:rdi"},
    {"cudaIpcCloseMemHandle", single, runtime, any_runtime, KIND_FREE, "imported-memory wait-free address:rdi"},
    {"cudaMemPoolImportPointer", single, runtime, any_runtime, KIND_ALLOC, "imported-memory out:rdi"},
    {"cudaImportExternalMemory", single, runtime, any_runtime, KIND_ALLOC, "external out:rdi bytes:rsi[24]"},
    {"cudaExternalMemoryGetMappedBuffer", single, runtime, any_runtime, KIND_ALLOC,
     "mapped-memory out:rdi bytes:rdx[8]"},
    {"cudaExternalMemoryGetMappedMipmappedArray", single, runtime, any_runtime, KIND_ALLOC, "array out:rdi"},
    {"cudaDestroyExternalMemory", single, runtime, any_runtime, KIND_FREE, "external address:rdi"},
    {"cudaGraphAddMemAllocNode", single, runtime, any_runtime, KIND_ALLOC,
     "graph-node graph:rsi out:r8+112 bytes:r8[104]"},
    {"cudaGraphAddMemFreeNode", single, runtime, any_runtime, KIND_FREE, "graph-node graph:rsi address:r8"},
};

} // namespace

std::span<const TableEntry> memory_entries()
{
    return table;
}

} // namespace gpusnoop
