// SPDX-License-Identifier: Apache-2.0
#include "attach/probe_table.hpp"
#include "attach/probe_layout.hpp"

namespace gpusnoop {
namespace {

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER
constexpr const char* copy_3d = "(*{32 int src_type, 40 src_host, 48 src, "
                                "120 int dst_type, 128 dst_host, 136 dst, 176 bytes, 184 height, 192 depth})";
// CUDA_MEMCPY3D_BATCH_OP
constexpr const char* single_copy_3d =
    "async operand-types elements ("
    "*{0 int src_type, 8 src, 40 int dst_type, 48 dst, 80 bytes, 88 height, 96 depth, 112}, _, stream)";

constexpr TableEntry driver_table[] = {
    // Launches, driver
    {"cuLaunchKernel[_ptsz]", KIND_LAUNCH, {launch_params, "often"}},
    {"cuLaunchCooperativeKernel[_ptsz]", KIND_LAUNCH, launch_params},
    {"cuLaunchKernelEx[_ptsz]", KIND_LAUNCH, "(*{0 dim3 grid, 12 dim3 block, 24 int smem, 32 stream}, func)"},
    {"cuLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST, module_launch_list},
    {"cuLaunch", KIND_LAUNCH_LEGACY, "(func)"},
    {"cuLaunchGrid", KIND_LAUNCH_LEGACY, "(func, int grid_x, int grid_y)"},
    {"cuLaunchGridAsync", KIND_LAUNCH_LEGACY, "(func, int grid_x, int grid_y, stream)"},
    {"cuGraphLaunch[_ptsz]", KIND_GRAPH_LAUNCH, "often (func, stream)"},
    {"cuLaunchHostFunc_v2[_ptsz]", KIND_HOST_FUNC, "(stream, func)"}, // driver 595+
    {"cuLaunchHostFunc[_ptsz]", KIND_HOST_FUNC, "(stream, func)"},
    {"cuStreamAddCallback[_ptsz]", KIND_HOST_FUNC, "(stream, func)"},

    // Launches, runtime. __cudaLaunchKernel is left out, because it jumps to cudaLaunchKernel (12.4, 13.0).
    {"cudaLaunchKernel[_ptsz]", KIND_LAUNCH, launch_dim3},
    {"cudaLaunchCooperativeKernel[_ptsz]", KIND_LAUNCH, launch_dim3},
    {"cudaLaunchKernelExC[_ptsz]", KIND_LAUNCH, "(*{0 dim3 grid, 12 dim3 block, 24 smem, 32 stream}, func)"},
    {"cudaLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST, launch_list},
    {"cudaGraphLaunch[_ptsz]", KIND_GRAPH_LAUNCH, "(func, stream)"},
    {"cudaLaunchHostFunc[_ptsz]", KIND_HOST_FUNC, "(stream, func)"},
    {"cudaStreamAddCallback[_ptsz]", KIND_HOST_FUNC, "(stream, func)"},

    // Parameters of legacy launches
    {"cuFuncSetBlockShape", KIND_SHAPE, "(handle, int block_x, int block_y, int block_z)"},
    {"cuFuncSetSharedSize", KIND_SHAPE, "(handle, int smem)"},

    // Stream capture, during which launches are recorded, not executed
    {"cuStreamBeginCapture[_ptsz]", KIND_CAPTURE_BEGIN, "(stream)"},
    {"cuStreamBeginCapture_v2[_ptsz]", KIND_CAPTURE_BEGIN, "(stream)"},
    {"cuStreamBeginCaptureToGraph[_ptsz]", KIND_CAPTURE_BEGIN, "(stream, graph)"},
    {"cuStreamEndCapture[_ptsz]", KIND_CAPTURE_END, "(stream, out)"},
    {"cuStreamCreate", KIND_STREAM_NEW, "(out)"},
    {"cuStreamCreateWithPriority", KIND_STREAM_NEW, "(out)"},
    {"cuGreenCtxStreamCreate", KIND_STREAM_NEW, "(out)"},
    {"cuStreamDestroy", KIND_STREAM_DESTROY, "(stream)"},
    {"cuStreamDestroy_v2", KIND_STREAM_DESTROY, "(stream)"},

    // Kernel names
    {"cuModuleGetFunction", KIND_GET_FUNCTION, "(out, _, name)"},
    {"cuLibraryGetKernel", KIND_GET_FUNCTION, "(out, _, name)"},
    {"cuKernelGetFunction", KIND_GET_ALIAS, "(out, handle)"},
    {"__cudaGetKernel", KIND_GET_ALIAS, "(out, handle)"},
    {"cudaGetKernel", KIND_GET_ALIAS, "(out, handle)"},
    {"cudaGetFuncBySymbol", KIND_GET_ALIAS, "(out, handle)"},
    {"cudaLibraryGetKernel", KIND_GET_FUNCTION, "(out, _, name)", cudart13},
    {"__cudaRegisterFunction", KIND_REGISTER, "(_, handle, _, name)"},

    // Contexts, which determine the device of a launch
    {"cuCtxCreate", KIND_CONTEXT_CREATE, "(out, _, int device)"},
    {"cuCtxCreate_v2", KIND_CONTEXT_CREATE, "(out, _, int device)"},
    {"cuCtxCreate_v3", KIND_CONTEXT_CREATE, "(out, _, _, _, int device)"},
    {"cuCtxCreate_v4", KIND_CONTEXT_CREATE, "(out, _, _, int device)"},
    {"cuDevicePrimaryCtxRetain", KIND_CONTEXT_NEW, "(out, int device)"},
    {"cuCtxSetCurrent", KIND_CONTEXT_SET, "(handle)"},
    {"cuCtxPushCurrent", KIND_CONTEXT_PUSH, "(handle)"},
    {"cuCtxPushCurrent_v2", KIND_CONTEXT_PUSH, "(handle)"},
    {"cuCtxPopCurrent", KIND_CONTEXT_POP, "(out)"},
    {"cuCtxPopCurrent_v2", KIND_CONTEXT_POP, "(out)"},
    {"cudaSetDevice", KIND_DEVICE_SET, "(int device)"},

    // Copies, driver. The symbols without _v2 take 32-bit addresses. They are left out, because only programs built
    // with CUDA 3.1 or older call them.
    {"cuMemcpy[_ptds]", KIND_COPY, "(dst, src, bytes)"},
    {"cuMemcpyAsync[_ptsz]", KIND_COPY, "async (dst, src, bytes, stream)"},
    {"cuMemcpyHtoD_v2[_ptds]", KIND_COPY, "h2d (dst, src, bytes)"},
    {"cuMemcpyHtoDAsync_v2[_ptsz]", KIND_COPY, "async h2d (dst, src, bytes, stream)"},
    {"cuMemcpyDtoH_v2[_ptds]", KIND_COPY, "d2h (dst, src, bytes)"},
    {"cuMemcpyDtoHAsync_v2[_ptsz]", KIND_COPY, "async d2h (dst, src, bytes, stream)"},
    {"cuMemcpyDtoD_v2[_ptds]", KIND_COPY, "d2d (dst, src, bytes)"},
    {"cuMemcpyDtoDAsync_v2[_ptsz]", KIND_COPY, "async d2d (dst, src, bytes, stream)"},
    {"cuMemcpyHtoA_v2[_ptds]", KIND_COPY, "h2d (dst_array, _, src, bytes)"},
    {"cuMemcpyHtoAAsync_v2[_ptsz]", KIND_COPY, "async h2d (dst_array, _, src, bytes, stream)"},
    {"cuMemcpyAtoH_v2[_ptds]", KIND_COPY, "d2h (dst, src_array, _, bytes)"},
    {"cuMemcpyAtoHAsync_v2[_ptsz]", KIND_COPY, "async d2h (dst, src_array, _, bytes, stream)"},
    {"cuMemcpyDtoA_v2[_ptds]", KIND_COPY, "d2d (dst_array, _, src, bytes)"},
    {"cuMemcpyAtoD_v2[_ptds]", KIND_COPY, "d2d (dst, src_array, _, bytes)"},
    {"cuMemcpyAtoA_v2[_ptds]", KIND_COPY, "d2d (dst_array, _, src_array, _, bytes)"},
    {"cuMemcpyPeer[_ptds]", KIND_COPY, "p2p (dst, _, src, _, bytes)"},
    {"cuMemcpyPeerAsync[_ptsz]", KIND_COPY, "async p2p (dst, _, src, _, bytes, stream)"},
    {"cuMemcpy2D_v2[_ptds]", KIND_COPY, copy_2d},
    {"cuMemcpy2DUnaligned_v2[_ptds]", KIND_COPY, copy_2d},
    {"cuMemcpy2DAsync_v2[_ptsz]", KIND_COPY, {copy_2d, "async (_, stream)"}},
    {"cuMemcpy3D_v2[_ptds]", KIND_COPY, copy_3d},
    {"cuMemcpy3DAsync_v2[_ptsz]", KIND_COPY, {copy_3d, "async (_, stream)"}},
    {"cuMemcpy3DPeer[_ptds]", KIND_COPY, {copy_3d, "p2p"}},
    {"cuMemcpy3DPeerAsync[_ptsz]", KIND_COPY, {copy_3d, "async p2p (_, stream)"}},
    {"cuMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async (dst, src, bytes, count, _, _, _, _, stream)"}, // driver 570+
    {"cuMemcpyBatchAsync_v2[_ptsz]", KIND_COPY_BATCH, "async (dst, src, bytes, count, _, _, _, stream)"},
    {"cuMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "(_, _, _, _, stream)"}},
    {"cuMemcpy3DBatchAsync_v2[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "(_, _, _, stream)"}},
    {"cuMemcpyWithAttributesAsync[_ptsz]", KIND_COPY, "async (dst, src, bytes, _, stream)"}, // driver 595+
    // The layout names no count, so each call counts as one copy.
    {"cuMemcpy3DWithAttributesAsync[_ptsz]", KIND_COPY_BATCH_3D, single_copy_3d},

    // Memsets and prefetches, driver
    {"cuMemsetD8_v2[_ptds]", KIND_COPY, "set (dst, _, bytes)"},
    {"cuMemsetD8Async[_ptsz]", KIND_COPY, "async set (dst, _, bytes, stream)"},
    {"cuMemsetD2D8_v2[_ptds]", KIND_COPY, "set (dst, _, _, bytes, height)"},
    {"cuMemsetD2D8Async[_ptsz]", KIND_COPY, "async set (dst, _, _, bytes, height, stream)"},
    {"cuMemsetD16_v2[_ptds]", KIND_COPY, "set x2 (dst, _, bytes)"},
    {"cuMemsetD16Async[_ptsz]", KIND_COPY, "async set x2 (dst, _, bytes, stream)"},
    {"cuMemsetD2D16_v2[_ptds]", KIND_COPY, "set x2 (dst, _, _, bytes, height)"},
    {"cuMemsetD2D16Async[_ptsz]", KIND_COPY, "async set x2 (dst, _, _, bytes, height, stream)"},
    {"cuMemsetD32_v2[_ptds]", KIND_COPY, "set x4 (dst, _, bytes)"},
    {"cuMemsetD32Async[_ptsz]", KIND_COPY, "async set x4 (dst, _, bytes, stream)"},
    {"cuMemsetD2D32_v2[_ptds]", KIND_COPY, "set x4 (dst, _, _, bytes, height)"},
    {"cuMemsetD2D32Async[_ptsz]", KIND_COPY, "async set x4 (dst, _, _, bytes, height, stream)"},
    {"cuMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch (dst, bytes, _, stream)"},
    {"cuMemPrefetchAsync_v2[_ptsz]", KIND_COPY, "async prefetch (dst, bytes, _, _, stream)"},
    {"cuMemPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH, "async prefetch (dst, bytes, count, _, _, _, _, stream)"},
    {"cuMemDiscardAndPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH,
     "async prefetch (dst, bytes, count, _, _, _, _, stream)"},

    // Copies, runtime. ToSymbol and FromSymbol take a host address that only identifies a device variable. The layout
    // skips this address, because the call does not copy from or to it.
    {"cudaMemcpy[_ptds]", KIND_COPY, "(dst, src, bytes, int direction)"},
    {"cudaMemcpyAsync[_ptsz]", KIND_COPY, "async (dst, src, bytes, int direction, stream)"},
    {"cudaMemcpyPeer", KIND_COPY, "p2p (dst, _, src, _, bytes)"},
    {"cudaMemcpyPeerAsync", KIND_COPY, "async p2p (dst, _, src, _, bytes, stream)"},
    {"cudaMemcpyToSymbol[_ptds]", KIND_COPY, "(_, src, bytes, _, int direction)"},
    {"cudaMemcpyToSymbolAsync[_ptsz]", KIND_COPY, "async (_, src, bytes, _, int direction, stream)"},
    {"cudaMemcpyFromSymbol[_ptds]", KIND_COPY, "(dst, _, bytes, _, int direction)"},
    {"cudaMemcpyFromSymbolAsync[_ptsz]", KIND_COPY, "async (dst, _, bytes, _, int direction, stream)"},
    {"cudaMemcpyToArray[_ptds]", KIND_COPY, "(dst_array, _, _, src, bytes, int direction)"},
    {"cudaMemcpyToArrayAsync[_ptsz]", KIND_COPY, "async (dst_array, _, _, src, bytes, int direction, stream)"},
    {"cudaMemcpyFromArray[_ptds]", KIND_COPY, "(dst, src_array, _, _, bytes, int direction)"},
    {"cudaMemcpyFromArrayAsync[_ptsz]", KIND_COPY, "async (dst, src_array, _, _, bytes, int direction, stream)"},
    {"cudaMemcpyArrayToArray[_ptds]", KIND_COPY, "(dst_array, _, _, src_array, _, _, bytes, int direction)"},
    {"cudaMemcpy2D[_ptds]", KIND_COPY, "(dst, _, src, _, bytes, height, int direction)"},
    {"cudaMemcpy2DAsync[_ptsz]", KIND_COPY, "async (dst, _, src, _, bytes, height, int direction, stream)"},
    {"cudaMemcpy2DToArray[_ptds]", KIND_COPY, "(dst_array, _, _, src, _, bytes, height, int direction)"},
    {"cudaMemcpy2DToArrayAsync[_ptsz]", KIND_COPY,
     "async (dst_array, _, _, src, _, bytes, height, int direction, stream)"},
    {"cudaMemcpy2DFromArray[_ptds]", KIND_COPY, "(dst, _, src_array, _, _, bytes, height, int direction)"},
    {"cudaMemcpy2DFromArrayAsync[_ptsz]", KIND_COPY,
     "async (dst, _, src_array, _, _, bytes, height, int direction, stream)"},
    {"cudaMemcpy2DArrayToArray[_ptds]", KIND_COPY, "(dst_array, _, _, src_array, _, _, bytes, height, int direction)"},
    {"cudaMemcpy3D[_ptds]", KIND_COPY, copy_3d_runtime},
    {"cudaMemcpy3DAsync[_ptsz]", KIND_COPY, {copy_3d_runtime, "async (_, stream)"}},
    {"cudaMemcpy3DPeer[_ptds]", KIND_COPY, copy_3d_peer},
    {"cudaMemcpy3DPeerAsync[_ptsz]", KIND_COPY, {copy_3d_peer, "async (_, stream)"}},
    {"cudaMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async (dst, src, bytes, count, _, _, _, _, stream)", cudart12},
    {"cudaMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async (dst, src, bytes, count, _, _, _, stream)", cudart13},
    {"cudaMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "(_, _, _, _, stream)"}, cudart12},
    {"cudaMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "(_, _, _, stream)"}, cudart13},

    // Memsets and prefetches, runtime. cudaPitchedPtr and cudaExtent are passed by value.
    {"cudaMemset[_ptds]", KIND_COPY, "set (dst, _, bytes)"},
    {"cudaMemsetAsync[_ptsz]", KIND_COPY, "async set (dst, _, bytes, stream)"},
    {"cudaMemset2D[_ptds]", KIND_COPY, "set (dst, _, _, bytes, height)"},
    {"cudaMemset2DAsync[_ptsz]", KIND_COPY, "async set (dst, _, _, bytes, height, stream)"},
    {"cudaMemset3D[_ptds]", KIND_COPY, "set ([dst?, _, _, _], _, [bytes, height, depth])"},
    {"cudaMemset3DAsync[_ptsz]", KIND_COPY, "async set ([dst?, _, _, _], _, [bytes, height, depth], stream)"},
    {"cudaMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch (dst, bytes, _, stream)", cudart11 | cudart12},
    {"cudaMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch (dst, bytes, _, _, stream)", cudart13},
    {"cudaMemPrefetchAsync_v2[_ptsz]", KIND_COPY, "async prefetch (dst, bytes, _, _, stream)", cudart12},
    {"cudaMemPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH, "async prefetch (dst, bytes, count, _, _, _, _, stream)",
     cudart13},
    {"cudaMemDiscardAndPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH,
     "async prefetch (dst, bytes, count, _, _, _, _, stream)", cudart13},

    // Waits. cuStreamWaitEvent is left out, because it does not block the host.
    {"cuStreamSynchronize[_ptsz]", KIND_WAIT, "wait-stream (stream)"},
    {"cuCtxSynchronize", KIND_WAIT, "wait-context"},
    {"cuCtxSynchronize_v2", KIND_WAIT, "wait-context (handle)"},
    {"cuEventSynchronize", KIND_WAIT, "wait-event (handle)"},
    {"cuStreamWaitValue32[_ptsz]", KIND_WAIT, "async wait-value (stream)"},
    {"cuStreamWaitValue32_v2[_ptsz]", KIND_WAIT, "async wait-value (stream)"},
    {"cuStreamWaitValue64[_ptsz]", KIND_WAIT, "async wait-value (stream)"},
    {"cuStreamWaitValue64_v2[_ptsz]", KIND_WAIT, "async wait-value (stream)"},
    {"cuStreamQuery[_ptsz]", KIND_WAIT, "poll (stream)"},
    {"cuEventQuery", KIND_WAIT, "poll (handle)"},
    {"cudaStreamSynchronize[_ptsz]", KIND_WAIT, "wait-stream (stream)"},
    {"cudaDeviceSynchronize", KIND_WAIT, "wait-context"},
    {"cudaThreadSynchronize", KIND_WAIT, "wait-context"},
    {"cudaEventSynchronize", KIND_WAIT, "wait-event (handle)"},
    {"cudaStreamQuery[_ptsz]", KIND_WAIT, "poll (stream)"},
    {"cudaEventQuery", KIND_WAIT, "poll (handle)"},
};

} // namespace

std::span<const TableEntry> call_entries()
{
    return driver_table;
}

} // namespace gpusnoop
