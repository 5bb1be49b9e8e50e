// SPDX-License-Identifier: Apache-2.0
#include "probes/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr const char* launch_params = "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2";
// dim3 by value takes two registers: x and y packed in the first, z in the second.
constexpr const char* launch_dim3 = "func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0 stream:s1";

// CUDA_MEMCPY2D, CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, cudaMemcpy3DParms, cudaMemcpy3DPeerParms, and
// CUDA_MEMCPY3D_BATCH_OP and cudaMemcpy3DBatchOp.
constexpr const char* copy_2d = "src_type:rdi[16.l] src_host:rdi[24] src:rdi[32] dst_type:rdi[72.l] dst_host:rdi[80] "
                                "dst:rdi[88] bytes:rdi[112] height:rdi[120]";
constexpr const char* copy_3d = "src_type:rdi[32.l] src_host:rdi[40] src:rdi[48] dst_type:rdi[120.l] dst_host:rdi[128] "
                                "dst:rdi[136] bytes:rdi[176] height:rdi[184] depth:rdi[192]";
constexpr const char* copy_3d_runtime = "src_array:rdi[0] src:rdi[32] dst_array:rdi[64] dst:rdi[96] bytes:rdi[128] "
                                        "height:rdi[136] depth:rdi[144] direction:rdi[152.l] elements";
constexpr const char* copy_3d_peer_runtime = "p2p src_array:rdi[0] src:rdi[32] dst_array:rdi[72] dst:rdi[104] "
                                             "bytes:rdi[144] height:rdi[152] depth:rdi[160] elements";
constexpr const char* copies_3d =
    "async operand-types count:rdi src_type:rsi[0.l] src:rsi[8] dst_type:rsi[40.l] dst:rsi[48] "
    "bytes:rsi[80] height:rsi[88] depth:rsi[96] elements words:14";
constexpr const char* one_of_copies_3d =
    "async operand-types src_type:rdi[0.l] src:rdi[8] dst_type:rdi[40.l] dst:rdi[48] "
    "bytes:rdi[80] height:rdi[88] depth:rdi[96] elements stream:rdx words:14";

constexpr TableEntry table[] = {
    // Launches, driver
    {"cuLaunchKernel[_ptsz]", KIND_LAUNCH, {launch_params, "often"}},
    {"cuLaunchCooperativeKernel[_ptsz]", KIND_LAUNCH, launch_params},
    {"cuLaunchKernelEx[_ptsz]", KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24.l] stream:rdi[32]"},
    {"cuLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST,
     "func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[32.l] "
     "stream:rdi[40] count:rsi.l words:7"},
    {"cuLaunch", KIND_LAUNCH_LEGACY, "func:rdi"},
    {"cuLaunchGrid", KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l"},
    {"cuLaunchGridAsync", KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l stream:rcx"},
    {"cuGraphLaunch[_ptsz]", KIND_GRAPH_LAUNCH, "often func:rdi stream:rsi"},
    {"cuLaunchHostFunc_v2[_ptsz]", KIND_HOST_FUNC, "func:rsi stream:rdi"}, // driver 595
    {"cuLaunchHostFunc[_ptsz]", KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cuStreamAddCallback[_ptsz]", KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // Launches, runtime. __cudaLaunchKernel is not here: it is a jump to cudaLaunchKernel (12.4, 13.0).
    {"cudaLaunchKernel[_ptsz]", KIND_LAUNCH, launch_dim3},
    {"cudaLaunchCooperativeKernel[_ptsz]", KIND_LAUNCH, launch_dim3},
    {"cudaLaunchKernelExC[_ptsz]", KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24] stream:rdi[32]"},
    {"cudaLaunchCooperativeKernelMultiDevice", KIND_LAUNCH_LIST,
     "func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[40] "
     "stream:rdi[48] count:rsi.l words:7"},
    {"cudaGraphLaunch[_ptsz]", KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"cudaLaunchHostFunc[_ptsz]", KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cudaStreamAddCallback[_ptsz]", KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // What legacy launches use
    {"cuFuncSetBlockShape", KIND_SHAPE, "handle:rdi block:rsi.l,rdx.l,rcx.l"},
    {"cuFuncSetSharedSize", KIND_SHAPE, "handle:rdi smem:rsi.l"},

    // Stream capture: launches are recorded, not executed
    {"cuStreamBeginCapture[_ptsz]", KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCapture_v2[_ptsz]", KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCaptureToGraph[_ptsz]", KIND_CAPTURE_BEGIN, "stream:rdi graph:rsi"},
    {"cuStreamEndCapture[_ptsz]", KIND_CAPTURE_END, "stream:rdi out:rsi"},

    // Kernel names
    {"cuModuleGetFunction", KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuLibraryGetKernel", KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuKernelGetFunction", KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"__cudaGetKernel", KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetKernel", KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetFuncBySymbol", KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaLibraryGetKernel", KIND_GET_FUNCTION, "out:rdi name:rdx", cudart13},
    {"__cudaRegisterFunction", KIND_REGISTER, "handle:rsi name:rcx"},

    // Contexts, for the device of a launch
    {"cuCtxCreate", KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v2", KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v3", KIND_CONTEXT_CREATE, "out:rdi device:r8.l"},
    {"cuCtxCreate_v4", KIND_CONTEXT_CREATE, "out:rdi device:rcx.l"},
    {"cuDevicePrimaryCtxRetain", KIND_CONTEXT_NEW, "out:rdi device:rsi.l"},
    {"cuCtxSetCurrent", KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPushCurrent", KIND_CONTEXT_PUSH, "handle:rdi"},
    {"cuCtxPushCurrent_v2", KIND_CONTEXT_PUSH, "handle:rdi"},
    {"cuCtxPopCurrent", KIND_CONTEXT_POP, "out:rdi"},
    {"cuCtxPopCurrent_v2", KIND_CONTEXT_POP, "out:rdi"},
    {"cudaSetDevice", KIND_DEVICE_SET, "device:rdi.l"},

    // Copies, driver. A symbol whose _v2 is here takes 32-bit addresses without it (CUDA 3.1): those are left out, as
    // nothing that was built since calls them.
    {"cuMemcpy[_ptds]", KIND_COPY, "dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyAsync[_ptsz]", KIND_COPY, "async dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyHtoD_v2[_ptds]", KIND_COPY, "h2d dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyHtoDAsync_v2[_ptsz]", KIND_COPY, "async h2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyDtoH_v2[_ptds]", KIND_COPY, "d2h dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyDtoHAsync_v2[_ptsz]", KIND_COPY, "async d2h dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyDtoD_v2[_ptds]", KIND_COPY, "d2d dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyDtoDAsync_v2[_ptsz]", KIND_COPY, "async d2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyHtoA_v2[_ptds]", KIND_COPY, "h2d dst_array:rdi src:rdx bytes:rcx"},
    {"cuMemcpyHtoAAsync_v2[_ptsz]", KIND_COPY, "async h2d dst_array:rdi src:rdx bytes:rcx stream:r8"},
    {"cuMemcpyAtoH_v2[_ptds]", KIND_COPY, "d2h dst:rdi src_array:rsi bytes:rcx"},
    {"cuMemcpyAtoHAsync_v2[_ptsz]", KIND_COPY, "async d2h dst:rdi src_array:rsi bytes:rcx stream:r8"},
    {"cuMemcpyDtoA_v2[_ptds]", KIND_COPY, "d2d dst_array:rdi src:rdx bytes:rcx"},
    {"cuMemcpyAtoD_v2[_ptds]", KIND_COPY, "d2d dst:rdi src_array:rsi bytes:rcx"},
    {"cuMemcpyAtoA_v2[_ptds]", KIND_COPY, "d2d dst_array:rdi src_array:rdx bytes:r8"},
    {"cuMemcpyPeer[_ptds]", KIND_COPY, "p2p dst:rdi src:rdx bytes:r8"},
    {"cuMemcpyPeerAsync[_ptsz]", KIND_COPY, "async p2p dst:rdi src:rdx bytes:r8 stream:r9"},
    {"cuMemcpy2D_v2[_ptds]", KIND_COPY, copy_2d},
    {"cuMemcpy2DUnaligned_v2[_ptds]", KIND_COPY, copy_2d},
    {"cuMemcpy2DAsync_v2[_ptsz]", KIND_COPY, {copy_2d, "async stream:rsi"}},
    {"cuMemcpy3D_v2[_ptds]", KIND_COPY, copy_3d},
    {"cuMemcpy3DAsync_v2[_ptsz]", KIND_COPY, {copy_3d, "async stream:rsi"}},
    {"cuMemcpy3DPeer[_ptds]", KIND_COPY, {copy_3d, "p2p"}},
    {"cuMemcpy3DPeerAsync[_ptsz]", KIND_COPY, {copy_3d, "async p2p stream:rsi"}},
    {"cuMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async dst:rdi src:rsi bytes:rdx count:rcx stream:s2"}, // driver 570
    {"cuMemcpyBatchAsync_v2[_ptsz]", KIND_COPY_BATCH, "async dst:rdi src:rsi bytes:rdx count:rcx stream:s1"},
    {"cuMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "stream:r8"}},
    {"cuMemcpy3DBatchAsync_v2[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "stream:rcx"}},
    {"cuMemcpyWithAttributesAsync[_ptsz]", KIND_COPY, "async dst:rdi src:rsi bytes:rdx stream:r8"}, // driver 595
    {"cuMemcpy3DWithAttributesAsync[_ptsz]", KIND_COPY_BATCH_3D, one_of_copies_3d}, // without a count: one

    // Sets and prefetches, driver
    {"cuMemsetD8_v2[_ptds]", KIND_COPY, "set dst:rdi bytes:rdx"},
    {"cuMemsetD8Async[_ptsz]", KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D8_v2[_ptds]", KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D8Async[_ptsz]", KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemsetD16_v2[_ptds]", KIND_COPY, "set x2 dst:rdi bytes:rdx"},
    {"cuMemsetD16Async[_ptsz]", KIND_COPY, "async set x2 dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D16_v2[_ptds]", KIND_COPY, "set x2 dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D16Async[_ptsz]", KIND_COPY, "async set x2 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemsetD32_v2[_ptds]", KIND_COPY, "set x4 dst:rdi bytes:rdx"},
    {"cuMemsetD32Async[_ptsz]", KIND_COPY, "async set x4 dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D32_v2[_ptds]", KIND_COPY, "set x4 dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D32Async[_ptsz]", KIND_COPY, "async set x4 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:rcx"},
    {"cuMemPrefetchAsync_v2[_ptsz]", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8"},
    {"cuMemPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH, "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},
    {"cuMemDiscardAndPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},

    // Copies, runtime. ToSymbol and FromSymbol take the address of a variable's twin on the host, where nothing is
    // copied to or from: that side is the device.
    {"cudaMemcpy[_ptds]", KIND_COPY, "dst:rdi src:rsi bytes:rdx direction:rcx.l"},
    {"cudaMemcpyAsync[_ptsz]", KIND_COPY, "async dst:rdi src:rsi bytes:rdx direction:rcx.l stream:r8"},
    {"cudaMemcpyPeer", KIND_COPY, "p2p dst:rdi src:rdx bytes:r8"},
    {"cudaMemcpyPeerAsync", KIND_COPY, "async p2p dst:rdi src:rdx bytes:r8 stream:r9"},
    {"cudaMemcpyToSymbol[_ptds]", KIND_COPY, "src:rsi bytes:rdx direction:r8.l"},
    {"cudaMemcpyToSymbolAsync[_ptsz]", KIND_COPY, "async src:rsi bytes:rdx direction:r8.l stream:r9"},
    {"cudaMemcpyFromSymbol[_ptds]", KIND_COPY, "dst:rdi bytes:rdx direction:r8.l"},
    {"cudaMemcpyFromSymbolAsync[_ptsz]", KIND_COPY, "async dst:rdi bytes:rdx direction:r8.l stream:r9"},
    {"cudaMemcpyToArray[_ptds]", KIND_COPY, "dst_array:rdi src:rcx bytes:r8 direction:r9.l"},
    {"cudaMemcpyToArrayAsync[_ptsz]", KIND_COPY, "async dst_array:rdi src:rcx bytes:r8 direction:r9.l stream:s0"},
    {"cudaMemcpyFromArray[_ptds]", KIND_COPY, "dst:rdi src_array:rsi bytes:r8 direction:r9.l"},
    {"cudaMemcpyFromArrayAsync[_ptsz]", KIND_COPY, "async dst:rdi src_array:rsi bytes:r8 direction:r9.l stream:s0"},
    {"cudaMemcpyArrayToArray[_ptds]", KIND_COPY, "dst_array:rdi src_array:rcx bytes:s0 direction:s1.l"},
    {"cudaMemcpy2D[_ptds]", KIND_COPY, "dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l"},
    {"cudaMemcpy2DAsync[_ptsz]", KIND_COPY, "async dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l stream:s1"},
    {"cudaMemcpy2DToArray[_ptds]", KIND_COPY, "dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l"},
    {"cudaMemcpy2DToArrayAsync[_ptsz]", KIND_COPY,
     "async dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"cudaMemcpy2DFromArray[_ptds]", KIND_COPY, "dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l"},
    {"cudaMemcpy2DFromArrayAsync[_ptsz]", KIND_COPY,
     "async dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"cudaMemcpy2DArrayToArray[_ptds]", KIND_COPY, "dst_array:rdi src_array:rcx bytes:s0 height:s1 direction:s2.l"},
    {"cudaMemcpy3D[_ptds]", KIND_COPY, copy_3d_runtime},
    {"cudaMemcpy3DAsync[_ptsz]", KIND_COPY, {copy_3d_runtime, "async stream:rsi"}},
    {"cudaMemcpy3DPeer[_ptds]", KIND_COPY, copy_3d_peer_runtime},
    {"cudaMemcpy3DPeerAsync[_ptsz]", KIND_COPY, {copy_3d_peer_runtime, "async stream:rsi"}},
    {"cudaMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async dst:rdi src:rsi bytes:rdx count:rcx stream:s2", cudart12},
    {"cudaMemcpyBatchAsync[_ptsz]", KIND_COPY_BATCH, "async dst:rdi src:rsi bytes:rdx count:rcx stream:s1", cudart13},
    {"cudaMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "stream:r8"}, cudart12},
    {"cudaMemcpy3DBatchAsync[_ptsz]", KIND_COPY_BATCH_3D, {copies_3d, "stream:rcx"}, cudart13},

    // Sets and prefetches, runtime. A cudaPitchedPtr and a cudaExtent by value lie on the stack.
    {"cudaMemset[_ptds]", KIND_COPY, "set dst:rdi bytes:rdx"},
    {"cudaMemsetAsync[_ptsz]", KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"cudaMemset2D[_ptds]", KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"cudaMemset2DAsync[_ptsz]", KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cudaMemset3D[_ptds]", KIND_COPY, "large:0x4,2x3 set bytes:s4 height:s5 depth:s6 dst:s0"},
    {"cudaMemset3DAsync[_ptsz]", KIND_COPY, "large:0x4,2x3 async set bytes:s4 height:s5 depth:s6 dst:s0 stream:rsi"},
    {"cudaMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:rcx", cudart11 | cudart12},
    {"cudaMemPrefetchAsync[_ptsz]", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8", cudart13},
    {"cudaMemPrefetchAsync_v2[_ptsz]", KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8", cudart12},
    {"cudaMemPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH, "async prefetch dst:rdi bytes:rsi count:rdx stream:s1",
     cudart13},
    {"cudaMemDiscardAndPrefetchBatchAsync[_ptsz]", KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1", cudart13},

    // Waits. cuStreamWaitEvent is not here: the host does not wait in it.
    {"cuStreamSynchronize[_ptsz]", KIND_WAIT, "wait-stream stream:rdi"},
    {"cuCtxSynchronize", KIND_WAIT, "wait-context"},
    {"cuCtxSynchronize_v2", KIND_WAIT, "wait-context handle:rdi"},
    {"cuEventSynchronize", KIND_WAIT, "wait-event handle:rdi"},
    {"cuStreamWaitValue32[_ptsz]", KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue32_v2[_ptsz]", KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue64[_ptsz]", KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue64_v2[_ptsz]", KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamQuery[_ptsz]", KIND_WAIT, "poll stream:rdi"},
    {"cuEventQuery", KIND_WAIT, "poll handle:rdi"},
    {"cudaStreamSynchronize[_ptsz]", KIND_WAIT, "wait-stream stream:rdi"},
    {"cudaDeviceSynchronize", KIND_WAIT, "wait-context"},
    {"cudaThreadSynchronize", KIND_WAIT, "wait-context"},
    {"cudaEventSynchronize", KIND_WAIT, "wait-event handle:rdi"},
    {"cudaStreamQuery[_ptsz]", KIND_WAIT, "poll stream:rdi"},
    {"cudaEventQuery", KIND_WAIT, "poll handle:rdi"},
};

} // namespace

std::span<const TableEntry> call_entries()
{
    return table;
}

} // namespace gpusnoop
