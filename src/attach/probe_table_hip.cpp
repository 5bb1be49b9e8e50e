// SPDX-License-Identifier: Apache-2.0
// Probe table of HIP 5 to 7, based on hip_runtime_api.h of 5.2, 5.7, 6.4 and 7.2, and on HIP's source for newer
// functions. libamdhip64 is AMD's driver and runtime in one. Only a few structures differ between versions.
//
// The table omits functions that call another function in the table (in brackets), because their calls would be counted
// twice: hipMemcpyFromSymbolAsync, and in 5.x hipMemcpyToSymbolAsync (hipMemcpyAsync); hipMemAllocHost (hipHostMalloc);
// hipMemAllocPitch (hipMallocPitch); hipLaunchByPtr (hipModuleLaunchKernel); in 5.2 the hipMemcpyPeer functions and
// hipGraphExecChildGraphNodeSetParams. It also omits hipCtxPopCurrent, hipCtxDestroy, hipDevicePrimaryCtxRelease and
// hipDevicePrimaryCtxReset, because they change no thread's device and free nothing (hip_context.cpp of ROCm 5.7 to 7).
#include "attach/probe_layout.hpp"
#include "attach/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr uint8_t before6 = hip52 | hip5, after52 = hip5 | hip6;

constexpr const char* launch_items =
    "(func, int grid_x, int grid_y, int grid_z, int block_x, int block_y, int block_z, smem, stream)";
// hipLaunchConfig_t, HIP_LAUNCH_CONFIG
constexpr const char* launch_config = "(*{0 dim3 grid, 12 dim3 block, 32 stream}, func)";

// HIP_MEMCPY3D of 5.x and later
constexpr const char* copy_3d_5 =
    "hip5-types (*{16 int src_type, 24 src_host, 32 src, "
    "72 int dst_type, 80 dst_host, 88 dst, 112 int bytes, 116 int height, 120 int depth})";
constexpr const char* copy_3d_6 = "hip6-types (*{32 int src_type, 40 src_host, 48 src, "
                                  "112 int dst_type, 120 dst_host, 128 dst, 160 bytes, 168 height, 176 depth})";

constexpr TableEntry hip_table[] = {
    // Launches. The Ext and Hcc functions take the grid in work items, not in blocks. HIP 5.x also exports
    // hipExtModuleLaunchKernel and hipHccModuleLaunchKernel under mangled C++ names, which rocBLAS calls.
    {"hipLaunchKernel[_spt]", KIND_LAUNCH, launch_dim3},
    {"hipExtLaunchKernel", KIND_LAUNCH, launch_dim3},
    {"hipLaunchCooperativeKernel[_spt]", KIND_LAUNCH, "(func, dim3 grid, dim3 block, _, int smem, stream)"},
    {"hipLaunchKernelExC", KIND_LAUNCH, {launch_config, "(*{24 smem})"}},
    {"hipDrvLaunchKernelEx", KIND_LAUNCH, {launch_config, "(*{24 int smem})"}},
    {"hipModuleLaunchKernel", KIND_LAUNCH, launch_params},
    {"hipModuleLaunchCooperativeKernel", KIND_LAUNCH, launch_params},
    {"hipExtModuleLaunchKernel", KIND_LAUNCH_ITEMS, launch_items},
    {"_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
     KIND_LAUNCH_ITEMS, launch_items},
    {"hipHccModuleLaunchKernel", KIND_LAUNCH_ITEMS, launch_items},
    {"_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_",
     KIND_LAUNCH_ITEMS, launch_items},
    {"hipLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST, launch_list},
    {"hipExtLaunchMultiKernelMultiDevice", KIND_LAUNCH_LIST, launch_list},
    {"hipModuleLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST, module_launch_list},
    {"hipGraphLaunch[_spt]", KIND_GRAPH_LAUNCH, "(func, stream)"},
    {"hipLaunchHostFunc[_spt]", KIND_HOST_FUNC, "(stream, func)"},
    {"hipStreamAddCallback[_spt]", KIND_HOST_FUNC, "(stream, func)"},

    // Kernel names. hipLaunchKernel identifies a kernel by the address of a variable, not of a function.
    {"__hipRegisterFunction", KIND_REGISTER, "(_, handle, _, name)"},
    {"hipModuleGetFunction", KIND_GET_FUNCTION, "(out, _, name)"},
    {"hipLibraryGetKernel", KIND_GET_FUNCTION, "(out, _, name)"},
    {"hipGetFuncBySymbol", KIND_GET_ALIAS, "(out, handle)"},
    {"hipKernelGetFunction", KIND_GET_ALIAS, "(out, handle)"},

    // Devices
    {"hipSetDevice", KIND_DEVICE_SET, "(int device)"},
    {"hipInit", KIND_INIT, ""},
    {"hipCtxCreate", KIND_CONTEXT_NEW, "(out, _, int device)"},
    {"hipDevicePrimaryCtxRetain", KIND_CONTEXT_NEW, "(out, int device)"},
    {"hipCtxSetCurrent", KIND_DEVICE_SET, "(handle)"},
    {"hipCtxPushCurrent", KIND_DEVICE_SET, "(handle)"},
    {"hipDeviceReset", KIND_CONTEXT_DESTROY, ""},

    // Copies
    {"hipMemcpy[_spt]", KIND_COPY, "(dst, src, bytes, int direction)"},
    {"hipMemcpyAsync[_spt]", KIND_COPY, "async (dst, src, bytes, int direction, stream)"},
    {"hipMemcpyWithStream", KIND_COPY, "(dst, src, bytes, int direction, stream)"},
    {"hipMemcpyHtoD", KIND_COPY, "h2d (dst, src, bytes)"},
    {"hipMemcpyHtoDAsync", KIND_COPY, "async h2d (dst, src, bytes, stream)"},
    {"hipMemcpyDtoH", KIND_COPY, "d2h (dst, src, bytes)"},
    {"hipMemcpyDtoHAsync", KIND_COPY, "async d2h (dst, src, bytes, stream)"},
    {"hipMemcpyDtoD", KIND_COPY, "d2d (dst, src, bytes)"},
    {"hipMemcpyDtoDAsync", KIND_COPY, "async d2d (dst, src, bytes, stream)"},
    {"hipMemcpyHtoA", KIND_COPY, "h2d (dst_array, _, src, bytes)"},
    {"hipMemcpyHtoAAsync", KIND_COPY, "async h2d (dst_array, _, src, bytes, stream)"},
    {"hipMemcpyAtoH", KIND_COPY, "d2h (dst, src_array, _, bytes)"},
    {"hipMemcpyAtoHAsync", KIND_COPY, "async d2h (dst, src_array, _, bytes, stream)"},
    {"hipMemcpyDtoA", KIND_COPY, "d2d (dst_array, _, src, bytes)"},
    {"hipMemcpyAtoD", KIND_COPY, "d2d (dst, src_array, _, bytes)"},
    {"hipMemcpyAtoA", KIND_COPY, "d2d (dst_array, _, src_array, _, bytes)"},
    {"hipMemcpyPeer", KIND_COPY, "p2p (dst, _, src, _, bytes)", after52},
    {"hipMemcpyPeerAsync", KIND_COPY, "async p2p (dst, _, src, _, bytes, stream)", after52},
    {"hipMemcpyToSymbol[_spt]", KIND_COPY, "(_, src, bytes, _, int direction)"},
    {"hipMemcpyToSymbolAsync[_spt]", KIND_COPY, "async (_, src, bytes, _, int direction, stream)", hip6},
    {"hipMemcpyFromSymbol[_spt]", KIND_COPY, "(dst, _, bytes, _, int direction)"},
    {"hipMemcpyToArray", KIND_COPY, "(dst_array, _, _, src, bytes, int direction)"},
    {"hipMemcpyFromArray[_spt]", KIND_COPY, "(dst, src_array, _, _, bytes, int direction)"},
    {"hipMemcpy2D[_spt]", KIND_COPY, "(dst, _, src, _, bytes, height, int direction)"},
    {"hipMemcpy2DAsync[_spt]", KIND_COPY, "async (dst, _, src, _, bytes, height, int direction, stream)"},
    {"hipMemcpy2DToArray[_spt]", KIND_COPY, "(dst_array, _, _, src, _, bytes, height, int direction)"},
    {"hipMemcpy2DToArrayAsync[_spt]", KIND_COPY,
     "async (dst_array, _, _, src, _, bytes, height, int direction, stream)"},
    {"hipMemcpy2DFromArray[_spt]", KIND_COPY, "(dst, _, src_array, _, _, bytes, height, int direction)"},
    {"hipMemcpy2DFromArrayAsync[_spt]", KIND_COPY,
     "async (dst, _, src_array, _, _, bytes, height, int direction, stream)"},
    {"hipMemcpy2DArrayToArray", KIND_COPY, "(dst_array, _, _, src_array, _, _, bytes, height, int direction)"},
    {"hipMemcpyParam2D", KIND_COPY, {copy_2d, "hip5-types"}, before6},
    {"hipMemcpyParam2D", KIND_COPY, {copy_2d, "hip6-types"}, hip6},
    {"hipMemcpyParam2DAsync", KIND_COPY, {copy_2d, "async hip5-types (_, stream)"}, before6},
    {"hipMemcpyParam2DAsync", KIND_COPY, {copy_2d, "async hip6-types (_, stream)"}, hip6},
    {"hipDrvMemcpy2DUnaligned", KIND_COPY, {copy_2d, "hip5-types"}, before6},
    {"hipDrvMemcpy2DUnaligned", KIND_COPY, {copy_2d, "hip6-types"}, hip6},
    {"hipMemcpy3D[_spt]", KIND_COPY, copy_3d_runtime},
    {"hipMemcpy3DAsync[_spt]", KIND_COPY, {copy_3d_runtime, "async (_, stream)"}},
    {"hipDrvMemcpy3D", KIND_COPY, copy_3d_5, before6},
    {"hipDrvMemcpy3D", KIND_COPY, copy_3d_6, hip6},
    {"hipDrvMemcpy3DAsync", KIND_COPY, {copy_3d_5, "async (_, stream)"}, before6},
    {"hipDrvMemcpy3DAsync", KIND_COPY, {copy_3d_6, "async (_, stream)"}, hip6},
    {"hipMemcpy3DPeer", KIND_COPY, copy_3d_peer},
    {"hipMemcpy3DPeerAsync", KIND_COPY, {copy_3d_peer, "async (_, stream)"}},
    {"hipMemcpyBatchAsync", KIND_COPY_BATCH, "async (dst, src, bytes, count, _, _, _, _, stream)"},
    {"hipMemcpy3DBatchAsync", KIND_COPY_BATCH_3D, {copies_3d, "(_, _, _, _, stream)"}},

    // Memsets and prefetches
    {"hipMemset[_spt]", KIND_COPY, "set (dst, _, bytes)"},
    {"hipMemset2D[_spt]", KIND_COPY, "set (dst, _, _, bytes, height)"},
    {"hipMemset3D[_spt]", KIND_COPY, "set ([dst?, _, _, _], _, [bytes, height, depth])"},
    {"hipMemsetD8", KIND_COPY, "set (dst, _, bytes)"},
    {"hipMemsetD2D8", KIND_COPY, "set (dst, _, _, bytes, height)"},
    {"hipMemsetD16", KIND_COPY, "set x2 (dst, _, bytes)"},
    {"hipMemsetD2D16", KIND_COPY, "set x2 (dst, _, _, bytes, height)"},
    {"hipMemsetD32", KIND_COPY, "set x4 (dst, _, bytes)"},
    {"hipMemsetD2D32", KIND_COPY, "set x4 (dst, _, _, bytes, height)"},
    {"hipMemsetAsync[_spt]", KIND_COPY, "async set (dst, _, bytes, stream)"},
    {"hipMemset2DAsync[_spt]", KIND_COPY, "async set (dst, _, _, bytes, height, stream)"},
    {"hipMemset3DAsync[_spt]", KIND_COPY, "async set ([dst?, _, _, _], _, [bytes, height, depth], stream)"},
    {"hipMemsetD8Async", KIND_COPY, "async set (dst, _, bytes, stream)"},
    {"hipMemsetD2D8Async", KIND_COPY, "async set (dst, _, _, bytes, height, stream)"},
    {"hipMemsetD16Async", KIND_COPY, "async set x2 (dst, _, bytes, stream)"},
    {"hipMemsetD2D16Async", KIND_COPY, "async set x2 (dst, _, _, bytes, height, stream)"},
    {"hipMemsetD32Async", KIND_COPY, "async set x4 (dst, _, bytes, stream)"},
    {"hipMemsetD2D32Async", KIND_COPY, "async set x4 (dst, _, _, bytes, height, stream)"},
    {"hipMemPrefetchAsync", KIND_COPY, "async prefetch (dst, bytes, _, stream)"},
    {"hipMemPrefetchAsync_v2", KIND_COPY, "async prefetch (dst, bytes, _, _, stream)"},
    {"hipMemPrefetchBatchAsync", KIND_COPY_BATCH, "async prefetch (dst, bytes, count, _, _, _, _, stream)"},

    // Waits
    {"hipStreamSynchronize[_spt]", KIND_WAIT, "wait-stream (stream)"},
    {"hipDeviceSynchronize", KIND_WAIT, "wait-context"},
    {"hipCtxSynchronize", KIND_WAIT, "wait-context"},
    {"hipEventSynchronize", KIND_WAIT, "wait-event (handle)"},
    {"hipStreamWaitValue32", KIND_WAIT, "async wait-value (stream)"},
    {"hipStreamWaitValue64", KIND_WAIT, "async wait-value (stream)"},
    {"hipStreamQuery[_spt]", KIND_WAIT, "poll (stream)"},
    {"hipEventQuery", KIND_WAIT, "poll (handle)"},
    {"hipExecutionCtxSynchronize", KIND_WAIT, "wait-context (handle)"},

    // Memory
    {"hipMalloc", KIND_ALLOC, "device-memory (out, bytes)"},
    {"hipExtMallocWithFlags", KIND_ALLOC, "device-memory (out, bytes)"},
    {"hipMallocPitch", KIND_ALLOC, "device-memory (out, pitch, bytes, height)"},
    {"hipMalloc3D", KIND_ALLOC, "device-memory (out pitch+8, [bytes, height, depth])"},
    {"hipMallocManaged", KIND_ALLOC, "managed-memory (out, bytes)"},
    {"hipMallocAsync", KIND_ALLOC, "async pool-memory (out, bytes, stream)"},
    {"hipMallocFromPoolAsync", KIND_ALLOC, "async pool-memory (out, bytes, _, stream)"},
    {"hipHostMalloc", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"hipHostAlloc", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"hipMallocHost", KIND_ALLOC, "pinned-memory (out, bytes)"},
    {"hipMallocArray", KIND_ALLOC, "array (out, channel_bits, bytes, height)"},
    {"hipMalloc3DArray", KIND_ALLOC, "array (out, channel_bits, [bytes, height, depth])"},
    {"hipArrayCreate", KIND_ALLOC, "array (out, *{0 bytes, 8 height, 16 int format, 20 int channels})"},
    {"hipArray3DCreate", KIND_ALLOC, array_3d},
    {"hipMallocMipmappedArray", KIND_ALLOC, "array (out, channel_bits, [bytes, height, depth], int levels)"},
    {"hipMipmappedArrayCreate", KIND_ALLOC, {array_3d, "(_, _, int levels)"}},
    {"hipMemPoolCreate", KIND_ALLOC, "pool (out, *{8 int location, 12 int device})"},
    {"hipMemPoolImportFromShareableHandle", KIND_ALLOC, "pool (out)"},
    {"hipMemPoolImportPointer", KIND_ALLOC, "imported-memory (out)"},
    {"hipIpcOpenMemHandle", KIND_ALLOC, "imported-memory (out)"},
    {"hipImportExternalMemory", KIND_ALLOC, "external (out, *{24 bytes})"},
    {"hipExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory (out, _, *{8 bytes})"},
    {"hipMemAddressReserve", KIND_ALLOC, "addresses (out, bytes)"},
    {"hipGraphAddMemAllocNode", KIND_ALLOC, "graph-node (_, graph, _, _, out+112 *{104 bytes})"},
    {"hipHostRegister", KIND_REGISTER_HOST, "registered-memory (address, bytes)"},
    {"hipIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free (address)"},
    {"hipDestroyExternalMemory", KIND_FREE, "external (address)"},
    {"hipFree", KIND_FREE, "device-memory wait-free (address)"},
    {"hipFreeAsync", KIND_FREE, "async pool-memory wait-free (address, stream)"},
    {"hipHostFree", KIND_FREE, "pinned-memory wait-free (address)"},
    {"hipFreeHost", KIND_FREE, "pinned-memory wait-free (address)"},
    {"hipHostUnregister", KIND_FREE, "registered-memory wait-free (address)"},
    {"hipFreeArray", KIND_FREE, "array (address)"},
    {"hipArrayDestroy", KIND_FREE, "array (address)"},
    {"hipFreeMipmappedArray", KIND_FREE, "array (address)"},
    {"hipMipmappedArrayDestroy", KIND_FREE, "array (address)"},
    {"hipMemPoolDestroy", KIND_FREE, "pool (address)"},
    {"hipMemAddressFree", KIND_FREE, "addresses (address)"},
    {"hipDrvGraphAddMemFreeNode", KIND_FREE, "graph-node (_, graph, _, _, address)"},
    {"hipGraphAddMemFreeNode", KIND_FREE, "graph-node (_, graph, _, _, address)"},
    {"hipMemPoolTrimTo", KIND_TRIM, "pool (handle)"},
    {"hipDeviceGraphMemTrim", KIND_TRIM, "graph-node (int device)"},
    {"hipMemCreate", KIND_PHYSICAL_NEW, "physical (out, bytes, *{4 int location, 8 int device})", hip52},
    {"hipMemCreate", KIND_PHYSICAL_NEW, "physical (out, bytes, *{8 int location, 12 int device})", after52},
    {"hipMemImportFromShareableHandle", KIND_PHYSICAL_NEW, "imported-physical (out)"},
    {"hipMemRetainAllocationHandle", KIND_PHYSICAL_RETAIN, "(out)"},
    {"hipMemRelease", KIND_PHYSICAL_FREE, "(handle)"},
    {"hipMemMap", KIND_MAP, "mapped-memory (address, bytes, _, handle)"},
    {"hipMemUnmap", KIND_UNMAP, "mapped-memory (address, bytes)"},

    // Captures and graphs
    {"hipEventRecord[_spt]", KIND_EVENT_RECORD, "(handle, stream)"},
    {"hipEventRecordWithFlags", KIND_EVENT_RECORD, "(handle, stream)"},
    {"hipStreamWaitEvent[_spt]", KIND_EVENT_WAIT, "(stream, handle)"},
    {"hipEventDestroy", KIND_EVENT_DESTROY, "(handle)"},
    {"hipStreamBeginCapture[_spt]", KIND_CAPTURE_BEGIN, "(stream)"},
    {"hipStreamBeginCaptureToGraph", KIND_CAPTURE_BEGIN, "(stream, graph)"},
    {"hipStreamEndCapture[_spt]", KIND_CAPTURE_END, "(stream, out)"},
    {"hipStreamCreate", KIND_STREAM_NEW, "(out)"},
    {"hipStreamCreateWithFlags", KIND_STREAM_NEW, "(out)"},
    {"hipStreamCreateWithPriority", KIND_STREAM_NEW, "(out)"},
    {"hipExtStreamCreateWithCUMask", KIND_STREAM_NEW, "(out)"},
    {"hipStreamDestroy", KIND_STREAM_DESTROY, "(stream)"},
    {"hipGraphCreate", KIND_GRAPH_NEW, "(out)"},
    {"hipGraphClone", KIND_GRAPH_NEW, "(out, graph)"},
    {"hipGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node (_, graph)"},
    {"hipGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"hipGraphAddMemcpyNode1D", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"hipGraphAddMemcpyNodeFromSymbol", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"hipGraphAddMemcpyNodeToSymbol", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"hipGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node (_, graph)"},
    {"hipGraphAddHostNode", KIND_GRAPH_NODE, "host-node (_, graph)"},
    {"hipGraphAddChildGraphNode", KIND_GRAPH_NODE, "(_, graph, _, _, child)"},
    {"hipGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddBatchMemOpNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"hipGraphAddNode", KIND_GRAPH_NODE, "(_, graph, _, _, *{0 int node_type, 16 child})"},
    {"hipDrvGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"hipDrvGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node (_, graph)"},
    {"hipGraphDestroy", KIND_GRAPH_DESTROY, "(graph)"},
    {"hipGraphInstantiate", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"hipGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"hipGraphInstantiateWithParams", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"hipGraphUpload", KIND_GRAPH_UPLOAD, "(func, stream)"},
    {"hipGraphExecUpdate", KIND_GRAPH_UPDATE, "(func, graph, _, out)"},
    {"hipGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecMemcpyNodeSetParams1D", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecMemcpyNodeSetParamsFromSymbol", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecMemcpyNodeSetParamsToSymbol", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecHostNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "(func)", after52},
    {"hipGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecBatchMemOpNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipDrvGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipDrvGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"hipGraphNodeSetEnabled", KIND_GRAPH_SET, "(func)"},
    {"hipGraphExecDestroy", KIND_EXEC_DESTROY, "(func)"},
};

} // namespace

std::span<const TableEntry> hip_entries()
{
    return hip_table;
}

} // namespace gpusnoop
