// SPDX-License-Identifier: Apache-2.0
// HIP 5 to 7: hip_runtime_api.h of 5.2, 5.7, 6.4 and 7.2; what is newer, from its source. libamdhip64 is AMD's driver
// and runtime in one, and argument places are the same in all of them but for a few structures.
//
// Some functions are not here, because they call others that are, and would count twice: hipMemcpyFromSymbolAsync, and
// in 5.x hipMemcpyToSymbolAsync (hipMemcpyAsync); hipMemAllocHost (hipHostMalloc); hipMemAllocPitch (hipMallocPitch);
// hipLaunchByPtr (hipModuleLaunchKernel); in 5.2 hipMemcpyPeer and its like, hipGraphExecChildGraphNodeSetParams. Nor
// are hipCtxPopCurrent, hipCtxDestroy, hipDevicePrimaryCtxRelease and hipDevicePrimaryCtxReset, which change no
// thread's device and free nothing (hip_context.cpp of ROCm 5.7 to 7).
#include "probes/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr uint8_t before6 = hip52 | hip5, after52 = hip5 | hip6;

constexpr const char* launch_params = "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2";
constexpr const char* launch_items = "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1 stream:s2";
constexpr const char* launch_dim3 = "func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0 stream:s1";
// hipLaunchConfig_t, HIP_LAUNCH_CONFIG; lists of hipLaunchParams, hipFunctionLaunchParams
constexpr const char* launch_config =
    "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] stream:rdi[32]";
constexpr const char* launch_list =
    "func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] "
    "block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[40] stream:rdi[48] count:rsi.l words:7";
constexpr const char* module_launch_list =
    "func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[32.l] "
    "stream:rdi[40] count:rsi.l words:7";

// hip_Memcpy2D; HIP_MEMCPY3D of 5.x and later; hipMemcpy3DParms, hipMemcpy3DPeerParms; hipMemcpy3DBatchOp
constexpr const char* copy_2d = "src_type:rdi[16.l] src_host:rdi[24] src:rdi[32] dst_type:rdi[72.l] dst_host:rdi[80] "
                                "dst:rdi[88] bytes:rdi[112] height:rdi[120]";
constexpr const char* copy_3d_5 = "hip5-types src_type:rdi[16.l] src_host:rdi[24] src:rdi[32] dst_type:rdi[72.l] "
                                  "dst_host:rdi[80] dst:rdi[88] bytes:rdi[112.l] height:rdi[116.l] depth:rdi[120.l]";
constexpr const char* copy_3d_6 = "hip6-types src_type:rdi[32.l] src_host:rdi[40] src:rdi[48] dst_type:rdi[112.l] "
                                  "dst_host:rdi[120] dst:rdi[128] bytes:rdi[160] height:rdi[168] depth:rdi[176]";
constexpr const char* copy_3d_runtime = "src_array:rdi[0] src:rdi[32] dst_array:rdi[64] dst:rdi[96] bytes:rdi[128] "
                                        "height:rdi[136] depth:rdi[144] direction:rdi[152.l] elements";
constexpr const char* copy_3d_peer = "p2p src_array:rdi[0] src:rdi[32] dst_array:rdi[72] dst:rdi[104] bytes:rdi[144] "
                                     "height:rdi[152] depth:rdi[160] elements";
constexpr const char* copies_3d =
    "async operand-types count:rdi src_type:rsi[0.l] src:rsi[8] dst_type:rsi[40.l] dst:rsi[48] "
    "bytes:rsi[80] height:rsi[88] depth:rsi[96] elements words:14";

// HIP_ARRAY3D_DESCRIPTOR
constexpr const char* array_3d =
    "array out:rdi bytes:rsi[0] height:rsi[8] depth:rsi[16] format:rsi[24.l] channels:rsi[28.l]";

constexpr TableEntry table[] = {
    // Launches. Those of Ext and Hcc say how many work items there are, not blocks; the names of C++ are those that the
    // libraries of 5.x have, and what rocBLAS calls.
    {"hipLaunchKernel[_spt]", KIND_LAUNCH, launch_dim3},
    {"hipExtLaunchKernel", KIND_LAUNCH, launch_dim3},
    {"hipLaunchCooperativeKernel[_spt]", KIND_LAUNCH,
     "func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0.l stream:s1"},
    {"hipLaunchKernelExC", KIND_LAUNCH, {launch_config, "smem:rdi[24]"}},
    {"hipDrvLaunchKernelEx", KIND_LAUNCH, {launch_config, "smem:rdi[24.l]"}},
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
    {"hipGraphLaunch[_spt]", KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"hipLaunchHostFunc[_spt]", KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"hipStreamAddCallback[_spt]", KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // Kernel names. What hipLaunchKernel is given is the address of a variable, not of a function.
    {"__hipRegisterFunction", KIND_REGISTER, "handle:rsi name:rcx"},
    {"hipModuleGetFunction", KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"hipLibraryGetKernel", KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"hipGetFuncBySymbol", KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"hipKernelGetFunction", KIND_GET_ALIAS, "out:rdi handle:rsi"},

    // Devices
    {"hipSetDevice", KIND_DEVICE_SET, "device:rdi.l"},
    {"hipInit", KIND_INIT, ""},
    {"hipCtxCreate", KIND_CONTEXT_NEW, "out:rdi device:rdx.l"},
    {"hipDevicePrimaryCtxRetain", KIND_CONTEXT_NEW, "out:rdi device:rsi.l"},
    {"hipCtxSetCurrent", KIND_DEVICE_SET, "handle:rdi"},
    {"hipCtxPushCurrent", KIND_DEVICE_SET, "handle:rdi"},
    {"hipDeviceReset", KIND_MEMORY_GONE, ""},

    // Copies
    {"hipMemcpy[_spt]", KIND_COPY, "dst:rdi src:rsi bytes:rdx direction:rcx.l"},
    {"hipMemcpyAsync[_spt]", KIND_COPY, "async dst:rdi src:rsi bytes:rdx direction:rcx.l stream:r8"},
    {"hipMemcpyWithStream", KIND_COPY, "dst:rdi src:rsi bytes:rdx direction:rcx.l stream:r8"},
    {"hipMemcpyHtoD", KIND_COPY, "h2d dst:rdi src:rsi bytes:rdx"},
    {"hipMemcpyHtoDAsync", KIND_COPY, "async h2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"hipMemcpyDtoH", KIND_COPY, "d2h dst:rdi src:rsi bytes:rdx"},
    {"hipMemcpyDtoHAsync", KIND_COPY, "async d2h dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"hipMemcpyDtoD", KIND_COPY, "d2d dst:rdi src:rsi bytes:rdx"},
    {"hipMemcpyDtoDAsync", KIND_COPY, "async d2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"hipMemcpyHtoA", KIND_COPY, "h2d dst_array:rdi src:rdx bytes:rcx"},
    {"hipMemcpyHtoAAsync", KIND_COPY, "async h2d dst_array:rdi src:rdx bytes:rcx stream:r8"},
    {"hipMemcpyAtoH", KIND_COPY, "d2h dst:rdi src_array:rsi bytes:rcx"},
    {"hipMemcpyAtoHAsync", KIND_COPY, "async d2h dst:rdi src_array:rsi bytes:rcx stream:r8"},
    {"hipMemcpyDtoA", KIND_COPY, "d2d dst_array:rdi src:rdx bytes:rcx"},
    {"hipMemcpyAtoD", KIND_COPY, "d2d dst:rdi src_array:rsi bytes:rcx"},
    {"hipMemcpyAtoA", KIND_COPY, "d2d dst_array:rdi src_array:rdx bytes:r8"},
    {"hipMemcpyPeer", KIND_COPY, "p2p dst:rdi src:rdx bytes:r8", after52},
    {"hipMemcpyPeerAsync", KIND_COPY, "async p2p dst:rdi src:rdx bytes:r8 stream:r9", after52},
    {"hipMemcpyToSymbol[_spt]", KIND_COPY, "src:rsi bytes:rdx direction:r8.l"},
    {"hipMemcpyToSymbolAsync[_spt]", KIND_COPY, "async src:rsi bytes:rdx direction:r8.l stream:r9", hip6},
    {"hipMemcpyFromSymbol[_spt]", KIND_COPY, "dst:rdi bytes:rdx direction:r8.l"},
    {"hipMemcpyToArray", KIND_COPY, "dst_array:rdi src:rcx bytes:r8 direction:r9.l"},
    {"hipMemcpyFromArray[_spt]", KIND_COPY, "dst:rdi src_array:rsi bytes:r8 direction:r9.l"},
    {"hipMemcpy2D[_spt]", KIND_COPY, "dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l"},
    {"hipMemcpy2DAsync[_spt]", KIND_COPY, "async dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l stream:s1"},
    {"hipMemcpy2DToArray[_spt]", KIND_COPY, "dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l"},
    {"hipMemcpy2DToArrayAsync[_spt]", KIND_COPY,
     "async dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"hipMemcpy2DFromArray[_spt]", KIND_COPY, "dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l"},
    {"hipMemcpy2DFromArrayAsync[_spt]", KIND_COPY,
     "async dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"hipMemcpy2DArrayToArray", KIND_COPY, "dst_array:rdi src_array:rcx bytes:s0 height:s1 direction:s2.l"},
    {"hipMemcpyParam2D", KIND_COPY, {copy_2d, "hip5-types"}, before6},
    {"hipMemcpyParam2D", KIND_COPY, {copy_2d, "hip6-types"}, hip6},
    {"hipMemcpyParam2DAsync", KIND_COPY, {copy_2d, "async stream:rsi hip5-types"}, before6},
    {"hipMemcpyParam2DAsync", KIND_COPY, {copy_2d, "async stream:rsi hip6-types"}, hip6},
    {"hipDrvMemcpy2DUnaligned", KIND_COPY, {copy_2d, "hip5-types"}, before6},
    {"hipDrvMemcpy2DUnaligned", KIND_COPY, {copy_2d, "hip6-types"}, hip6},
    {"hipMemcpy3D[_spt]", KIND_COPY, copy_3d_runtime},
    {"hipMemcpy3DAsync[_spt]", KIND_COPY, {copy_3d_runtime, "async stream:rsi"}},
    {"hipDrvMemcpy3D", KIND_COPY, copy_3d_5, before6},
    {"hipDrvMemcpy3D", KIND_COPY, copy_3d_6, hip6},
    {"hipDrvMemcpy3DAsync", KIND_COPY, {copy_3d_5, "async stream:rsi"}, before6},
    {"hipDrvMemcpy3DAsync", KIND_COPY, {copy_3d_6, "async stream:rsi"}, hip6},
    {"hipMemcpy3DPeer", KIND_COPY, copy_3d_peer},
    {"hipMemcpy3DPeerAsync", KIND_COPY, {copy_3d_peer, "async stream:rsi"}},
    {"hipMemcpyBatchAsync", KIND_COPY_BATCH, "async dst:rdi src:rsi bytes:rdx count:rcx stream:s2"},
    {"hipMemcpy3DBatchAsync", KIND_COPY_BATCH_3D, {copies_3d, "stream:r8"}},

    // Sets and prefetches
    {"hipMemset[_spt]", KIND_COPY, "set dst:rdi bytes:rdx"},
    {"hipMemset2D[_spt]", KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"hipMemset3D[_spt]", KIND_COPY, "large:0x4,2x3 set bytes:s4 height:s5 depth:s6 dst:s0"},
    {"hipMemsetD8", KIND_COPY, "set dst:rdi bytes:rdx"},
    {"hipMemsetD2D8", KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"hipMemsetD16", KIND_COPY, "set x2 dst:rdi bytes:rdx"},
    {"hipMemsetD2D16", KIND_COPY, "set x2 dst:rdi bytes:rcx height:r8"},
    {"hipMemsetD32", KIND_COPY, "set x4 dst:rdi bytes:rdx"},
    {"hipMemsetD2D32", KIND_COPY, "set x4 dst:rdi bytes:rcx height:r8"},
    {"hipMemsetAsync[_spt]", KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"hipMemset2DAsync[_spt]", KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"hipMemset3DAsync[_spt]", KIND_COPY, "large:0x4,2x3 async set bytes:s4 height:s5 depth:s6 dst:s0 stream:rsi"},
    {"hipMemsetD8Async", KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"hipMemsetD2D8Async", KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"hipMemsetD16Async", KIND_COPY, "async set x2 dst:rdi bytes:rdx stream:rcx"},
    {"hipMemsetD2D16Async", KIND_COPY, "async set x2 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"hipMemsetD32Async", KIND_COPY, "async set x4 dst:rdi bytes:rdx stream:rcx"},
    {"hipMemsetD2D32Async", KIND_COPY, "async set x4 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"hipMemPrefetchAsync", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:rcx"},
    {"hipMemPrefetchAsync_v2", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8"},
    {"hipMemPrefetchBatchAsync", KIND_COPY_BATCH, "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},

    // Waits
    {"hipStreamSynchronize[_spt]", KIND_WAIT, "wait-stream stream:rdi"},
    {"hipDeviceSynchronize", KIND_WAIT, "wait-context"},
    {"hipCtxSynchronize", KIND_WAIT, "wait-context"},
    {"hipEventSynchronize", KIND_WAIT, "wait-event handle:rdi"},
    {"hipStreamWaitValue32", KIND_WAIT, "async wait-value stream:rdi"},
    {"hipStreamWaitValue64", KIND_WAIT, "async wait-value stream:rdi"},
    {"hipStreamQuery[_spt]", KIND_WAIT, "poll stream:rdi"},
    {"hipEventQuery", KIND_WAIT, "poll handle:rdi"},
    {"hipExecutionCtxSynchronize", KIND_WAIT, "wait-context handle:rdi"},

    // Memory
    {"hipMalloc", KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"hipExtMallocWithFlags", KIND_ALLOC, "device-memory out:rdi bytes:rsi"},
    {"hipMallocPitch", KIND_ALLOC, "device-memory out:rdi pitch:rsi bytes:rdx height:rcx"},
    {"hipMalloc3D", KIND_ALLOC, "large:1x3 device-memory out:rdi pitch:rdi+8 bytes:s0 height:s1 depth:s2"},
    {"hipMallocManaged", KIND_ALLOC, "managed-memory out:rdi bytes:rsi"},
    {"hipMallocAsync", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rdx"},
    {"hipMallocFromPoolAsync", KIND_ALLOC, "async pool-memory out:rdi bytes:rsi stream:rcx"},
    {"hipHostMalloc", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"hipHostAlloc", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"hipMallocHost", KIND_ALLOC, "pinned-memory out:rdi bytes:rsi"},
    {"hipMallocArray", KIND_ALLOC, "array out:rdi channel_bits:rsi bytes:rdx height:rcx"},
    {"hipMalloc3DArray", KIND_ALLOC, "large:2x3 array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2"},
    {"hipArrayCreate", KIND_ALLOC, "array out:rdi bytes:rsi[0] height:rsi[8] format:rsi[16.l] channels:rsi[20.l]"},
    {"hipArray3DCreate", KIND_ALLOC, array_3d},
    {"hipMallocMipmappedArray", KIND_ALLOC,
     "large:2x3 array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2 levels:rdx.l"},
    {"hipMipmappedArrayCreate", KIND_ALLOC, {array_3d, "levels:rdx.l"}},
    {"hipMemPoolCreate", KIND_ALLOC, "pool out:rdi location:rsi[8.l] device:rsi[12.l]"},
    {"hipMemPoolImportFromShareableHandle", KIND_ALLOC, "pool out:rdi"},
    {"hipMemPoolImportPointer", KIND_ALLOC, "imported-memory out:rdi"},
    {"hipIpcOpenMemHandle", KIND_ALLOC, "imported-memory out:rdi"},
    {"hipImportExternalMemory", KIND_ALLOC, "external out:rdi bytes:rsi[24]"},
    {"hipExternalMemoryGetMappedBuffer", KIND_ALLOC, "mapped-memory out:rdi bytes:rdx[8]"},
    {"hipMemAddressReserve", KIND_ALLOC, "addresses out:rdi bytes:rsi"},
    {"hipGraphAddMemAllocNode", KIND_ALLOC, "graph-node graph:rsi out:r8+112 bytes:r8[104]"},
    {"hipHostRegister", KIND_REGISTER_HOST, "registered-memory address:rdi bytes:rsi"},
    {"hipIpcCloseMemHandle", KIND_FREE, "imported-memory wait-free address:rdi"},
    {"hipDestroyExternalMemory", KIND_FREE, "external address:rdi"},
    {"hipFree", KIND_FREE, "device-memory wait-free address:rdi"},
    {"hipFreeAsync", KIND_FREE, "async pool-memory wait-free address:rdi stream:rsi"},
    {"hipHostFree", KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"hipFreeHost", KIND_FREE, "pinned-memory wait-free address:rdi"},
    {"hipHostUnregister", KIND_FREE, "registered-memory wait-free address:rdi"},
    {"hipFreeArray", KIND_FREE, "array address:rdi"},
    {"hipArrayDestroy", KIND_FREE, "array address:rdi"},
    {"hipFreeMipmappedArray", KIND_FREE, "array address:rdi"},
    {"hipMipmappedArrayDestroy", KIND_FREE, "array address:rdi"},
    {"hipMemPoolDestroy", KIND_FREE, "pool address:rdi"},
    {"hipMemAddressFree", KIND_FREE, "addresses address:rdi"},
    {"hipDrvGraphAddMemFreeNode", KIND_FREE, "graph-node graph:rsi address:r8"},
    {"hipGraphAddMemFreeNode", KIND_FREE, "graph-node graph:rsi address:r8"},
    {"hipMemPoolTrimTo", KIND_TRIM, "pool handle:rdi"},
    {"hipDeviceGraphMemTrim", KIND_TRIM, "graph-node device:rdi.l"},
    {"hipMemCreate", KIND_PHYSICAL_NEW, "physical out:rdi bytes:rsi location:rdx[4.l] device:rdx[8.l]", hip52},
    {"hipMemCreate", KIND_PHYSICAL_NEW, "physical out:rdi bytes:rsi location:rdx[8.l] device:rdx[12.l]", after52},
    {"hipMemImportFromShareableHandle", KIND_PHYSICAL_NEW, "imported-physical out:rdi"},
    {"hipMemRetainAllocationHandle", KIND_PHYSICAL_HOLD, "out:rdi"},
    {"hipMemRelease", KIND_PHYSICAL_FREE, "handle:rdi"},
    {"hipMemMap", KIND_MAP, "mapped-memory address:rdi bytes:rsi handle:rcx"},
    {"hipMemUnmap", KIND_UNMAP, "mapped-memory address:rdi bytes:rsi"},

    // Captures and graphs
    {"hipEventRecord[_spt]", KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"hipEventRecordWithFlags", KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"hipStreamWaitEvent[_spt]", KIND_EVENT_WAIT, "stream:rdi handle:rsi"},
    {"hipStreamBeginCapture[_spt]", KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"hipStreamBeginCaptureToGraph", KIND_CAPTURE_BEGIN, "stream:rdi graph:rsi"},
    {"hipStreamEndCapture[_spt]", KIND_CAPTURE_END, "stream:rdi out:rsi"},
    {"hipGraphCreate", KIND_GRAPH_NEW, "out:rdi"},
    {"hipGraphClone", KIND_GRAPH_NEW, "out:rdi graph:rsi"},
    {"hipGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"hipGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"hipGraphAddMemcpyNode1D", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"hipGraphAddMemcpyNodeFromSymbol", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"hipGraphAddMemcpyNodeToSymbol", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"hipGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"hipGraphAddHostNode", KIND_GRAPH_NODE, "host-node graph:rsi"},
    {"hipGraphAddChildGraphNode", KIND_GRAPH_NODE, "graph:rsi child:r8"},
    {"hipGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddBatchMemOpNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"hipGraphAddNode", KIND_GRAPH_NODE, "graph:rsi node_type:r8[0.l] child:r8[16]"},
    {"hipDrvGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"hipDrvGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"hipGraphDestroy", KIND_GRAPH_GONE, "graph:rdi"},
    {"hipGraphInstantiate", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"hipGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"hipGraphInstantiateWithParams", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"hipGraphUpload", KIND_GRAPH_UPLOAD, "func:rdi stream:rsi"},
    {"hipGraphExecUpdate", KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rcx"},
    {"hipGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecMemcpyNodeSetParams1D", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecMemcpyNodeSetParamsFromSymbol", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecMemcpyNodeSetParamsToSymbol", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecHostNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "func:rdi", after52},
    {"hipGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecBatchMemOpNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipDrvGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipDrvGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphNodeSetEnabled", KIND_GRAPH_SET, "func:rdi"},
    {"hipGraphExecDestroy", KIND_EXEC_GONE, "func:rdi"},
};

} // namespace

std::span<const TableEntry> hip_entries()
{
    return table;
}

} // namespace gpusnoop
