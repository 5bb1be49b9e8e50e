// SPDX-License-Identifier: Apache-2.0
#include "probe_table.hpp"

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
constexpr const char* copies_3d = "async count:rdi src_type:rsi[0.l] src:rsi[8] dst_type:rsi[40.l] dst:rsi[48] "
                                  "bytes:rsi[80] height:rsi[88] depth:rsi[96] elements";
constexpr unsigned copies_3d_words = 14;
constexpr const char* one_of_copies_3d = "async src_type:rdi[0.l] src:rdi[8] dst_type:rdi[40.l] dst:rdi[48] "
                                         "bytes:rdi[80] height:rdi[88] depth:rdi[96] elements stream:rdx";

constexpr TableEntry table[] = {
    // Launches, driver
    {"cuLaunchKernel", ptsz, driver, any_runtime, KIND_LAUNCH, launch_params},
    {"cuLaunchCooperativeKernel", ptsz, driver, any_runtime, KIND_LAUNCH, launch_params},
    {"cuLaunchKernelEx", ptsz, driver, any_runtime, KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24.l] stream:rdi[32]"},
    {"cuLaunchCooperativeKernelMultiDevice", single, driver, any_runtime, KIND_LAUNCH_LIST,
     list_of("func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[32.l] "
             "stream:rdi[40] count:rsi.l",
             7)},
    {"cuLaunch", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi"},
    {"cuLaunchGrid", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l"},
    {"cuLaunchGridAsync", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l stream:rcx"},
    {"cuGraphLaunch", ptsz, driver, any_runtime, KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"cuLaunchHostFunc_v2", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"}, // driver 595
    {"cuLaunchHostFunc", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cuStreamAddCallback", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // Launches, runtime. __cudaLaunchKernel is not here: it is a jump to cudaLaunchKernel (12.4, 13.0).
    {"cudaLaunchKernel", ptsz, runtime, any_runtime, KIND_LAUNCH, launch_dim3},
    {"cudaLaunchCooperativeKernel", ptsz, runtime, any_runtime, KIND_LAUNCH, launch_dim3},
    {"cudaLaunchKernelExC", ptsz, runtime, any_runtime, KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24] stream:rdi[32]"},
    {"cudaLaunchCooperativeKernelMultiDevice", single, runtime, any_runtime, KIND_LAUNCH_LIST,
     list_of("func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[40] "
             "stream:rdi[48] count:rsi.l",
             7)},
    {"cudaGraphLaunch", ptsz, runtime, any_runtime, KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"cudaLaunchHostFunc", ptsz, runtime, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cudaStreamAddCallback", ptsz, runtime, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // What legacy launches use
    {"cuFuncSetBlockShape", single, driver, any_runtime, KIND_SHAPE, "handle:rdi block:rsi.l,rdx.l,rcx.l"},
    {"cuFuncSetSharedSize", single, driver, any_runtime, KIND_SHAPE, "handle:rdi smem:rsi.l"},

    // Stream capture: launches are recorded, not executed
    {"cuStreamBeginCapture", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCapture_v2", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCaptureToGraph", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi graph:rsi"},
    {"cuStreamEndCapture", ptsz, driver, any_runtime, KIND_CAPTURE_END, "stream:rdi out:rsi"},

    // Kernel names
    {"cuModuleGetFunction", single, driver, any_runtime, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuLibraryGetKernel", single, driver, any_runtime, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuKernelGetFunction", single, driver, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"__cudaGetKernel", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetKernel", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetFuncBySymbol", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaLibraryGetKernel", single, runtime, cudart13, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"__cudaRegisterFunction", single, runtime, any_runtime, KIND_REGISTER, "handle:rsi name:rcx"},

    // Contexts, for the device of a launch
    {"cuCtxCreate", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v2", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v3", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:r8.l"},
    {"cuCtxCreate_v4", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rcx.l"},
    {"cuDevicePrimaryCtxRetain", single, driver, any_runtime, KIND_CONTEXT_NEW, "out:rdi device:rsi.l"},
    {"cuCtxSetCurrent", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPushCurrent", single, driver, any_runtime, KIND_CONTEXT_PUSH, "handle:rdi"},
    {"cuCtxPushCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_PUSH, "handle:rdi"},
    {"cuCtxPopCurrent", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cuCtxPopCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cudaSetDevice", single, runtime, any_runtime, KIND_DEVICE_SET, "device:rdi.l"},

    // Copies, driver. A symbol whose _v2 is here takes 32-bit addresses without it (CUDA 3.1): those are left out, as
    // nothing that was built since calls them.
    {"cuMemcpy", ptds, driver, any_runtime, KIND_COPY, "dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyAsync", ptsz, driver, any_runtime, KIND_COPY, "async dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyHtoD_v2", ptds, driver, any_runtime, KIND_COPY, "h2d dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyHtoDAsync_v2", ptsz, driver, any_runtime, KIND_COPY, "async h2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyDtoH_v2", ptds, driver, any_runtime, KIND_COPY, "d2h dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyDtoHAsync_v2", ptsz, driver, any_runtime, KIND_COPY, "async d2h dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyDtoD_v2", ptds, driver, any_runtime, KIND_COPY, "d2d dst:rdi src:rsi bytes:rdx"},
    {"cuMemcpyDtoDAsync_v2", ptsz, driver, any_runtime, KIND_COPY, "async d2d dst:rdi src:rsi bytes:rdx stream:rcx"},
    {"cuMemcpyHtoA_v2", ptds, driver, any_runtime, KIND_COPY, "h2d dst_array:rdi src:rdx bytes:rcx"},
    {"cuMemcpyHtoAAsync_v2", ptsz, driver, any_runtime, KIND_COPY,
     "async h2d dst_array:rdi src:rdx bytes:rcx stream:r8"},
    {"cuMemcpyAtoH_v2", ptds, driver, any_runtime, KIND_COPY, "d2h dst:rdi src_array:rsi bytes:rcx"},
    {"cuMemcpyAtoHAsync_v2", ptsz, driver, any_runtime, KIND_COPY,
     "async d2h dst:rdi src_array:rsi bytes:rcx stream:r8"},
    {"cuMemcpyDtoA_v2", ptds, driver, any_runtime, KIND_COPY, "d2d dst_array:rdi src:rdx bytes:rcx"},
    {"cuMemcpyAtoD_v2", ptds, driver, any_runtime, KIND_COPY, "d2d dst:rdi src_array:rsi bytes:rcx"},
    {"cuMemcpyAtoA_v2", ptds, driver, any_runtime, KIND_COPY, "d2d dst_array:rdi src_array:rdx bytes:r8"},
    {"cuMemcpyPeer", ptds, driver, any_runtime, KIND_COPY, "p2p dst:rdi src:rdx bytes:r8"},
    {"cuMemcpyPeerAsync", ptsz, driver, any_runtime, KIND_COPY, "async p2p dst:rdi src:rdx bytes:r8 stream:r9"},
    {"cuMemcpy2D_v2", ptds, driver, any_runtime, KIND_COPY, copy_2d},
    {"cuMemcpy2DUnaligned_v2", ptds, driver, any_runtime, KIND_COPY, copy_2d},
    {"cuMemcpy2DAsync_v2", ptsz, driver, any_runtime, KIND_COPY, {copy_2d, "async stream:rsi"}},
    {"cuMemcpy3D_v2", ptds, driver, any_runtime, KIND_COPY, copy_3d},
    {"cuMemcpy3DAsync_v2", ptsz, driver, any_runtime, KIND_COPY, {copy_3d, "async stream:rsi"}},
    {"cuMemcpy3DPeer", ptds, driver, any_runtime, KIND_COPY, {copy_3d, "p2p"}},
    {"cuMemcpy3DPeerAsync", ptsz, driver, any_runtime, KIND_COPY, {copy_3d, "async p2p stream:rsi"}},
    {"cuMemcpyBatchAsync", ptsz, driver, any_runtime, KIND_COPY_BATCH,
     "async dst:rdi src:rsi bytes:rdx count:rcx stream:s2"}, // driver 570
    {"cuMemcpyBatchAsync_v2", ptsz, driver, any_runtime, KIND_COPY_BATCH,
     "async dst:rdi src:rsi bytes:rdx count:rcx stream:s1"},
    {"cuMemcpy3DBatchAsync", ptsz, driver, any_runtime, KIND_COPY_BATCH_3D,
     list_of({copies_3d, "stream:r8"}, copies_3d_words)},
    {"cuMemcpy3DBatchAsync_v2", ptsz, driver, any_runtime, KIND_COPY_BATCH_3D,
     list_of({copies_3d, "stream:rcx"}, copies_3d_words)},
    {"cuMemcpyWithAttributesAsync", ptsz, driver, any_runtime, KIND_COPY,
     "async dst:rdi src:rsi bytes:rdx stream:r8"}, // driver 595
    {"cuMemcpy3DWithAttributesAsync", ptsz, driver, any_runtime, KIND_COPY_BATCH_3D,
     list_of(one_of_copies_3d, copies_3d_words)}, // without a count: one

    // Sets and prefetches, driver
    {"cuMemsetD8_v2", ptds, driver, any_runtime, KIND_COPY, "set dst:rdi bytes:rdx"},
    {"cuMemsetD8Async", ptsz, driver, any_runtime, KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D8_v2", ptds, driver, any_runtime, KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D8Async", ptsz, driver, any_runtime, KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemsetD16_v2", ptds, driver, any_runtime, KIND_COPY, "set x2 dst:rdi bytes:rdx"},
    {"cuMemsetD16Async", ptsz, driver, any_runtime, KIND_COPY, "async set x2 dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D16_v2", ptds, driver, any_runtime, KIND_COPY, "set x2 dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D16Async", ptsz, driver, any_runtime, KIND_COPY, "async set x2 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemsetD32_v2", ptds, driver, any_runtime, KIND_COPY, "set x4 dst:rdi bytes:rdx"},
    {"cuMemsetD32Async", ptsz, driver, any_runtime, KIND_COPY, "async set x4 dst:rdi bytes:rdx stream:rcx"},
    {"cuMemsetD2D32_v2", ptds, driver, any_runtime, KIND_COPY, "set x4 dst:rdi bytes:rcx height:r8"},
    {"cuMemsetD2D32Async", ptsz, driver, any_runtime, KIND_COPY, "async set x4 dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cuMemPrefetchAsync", ptsz, driver, any_runtime, KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:rcx"},
    {"cuMemPrefetchAsync_v2", ptsz, driver, any_runtime, KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8"},
    {"cuMemPrefetchBatchAsync", ptsz, driver, any_runtime, KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},
    {"cuMemDiscardAndPrefetchBatchAsync", ptsz, driver, any_runtime, KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},

    // Copies, runtime. ToSymbol and FromSymbol take the address of a variable's twin on the host, where nothing is
    // copied to or from: that side is the device.
    {"cudaMemcpy", ptds, runtime, any_runtime, KIND_COPY, "dst:rdi src:rsi bytes:rdx direction:rcx.l"},
    {"cudaMemcpyAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst:rdi src:rsi bytes:rdx direction:rcx.l stream:r8"},
    {"cudaMemcpyPeer", single, runtime, any_runtime, KIND_COPY, "p2p dst:rdi src:rdx bytes:r8"},
    {"cudaMemcpyPeerAsync", single, runtime, any_runtime, KIND_COPY, "async p2p dst:rdi src:rdx bytes:r8 stream:r9"},
    {"cudaMemcpyToSymbol", ptds, runtime, any_runtime, KIND_COPY, "src:rsi bytes:rdx direction:r8.l"},
    {"cudaMemcpyToSymbolAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async src:rsi bytes:rdx direction:r8.l stream:r9"},
    {"cudaMemcpyFromSymbol", ptds, runtime, any_runtime, KIND_COPY, "dst:rdi bytes:rdx direction:r8.l"},
    {"cudaMemcpyFromSymbolAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst:rdi bytes:rdx direction:r8.l stream:r9"},
    {"cudaMemcpyToArray", ptds, runtime, any_runtime, KIND_COPY, "dst_array:rdi src:rcx bytes:r8 direction:r9.l"},
    {"cudaMemcpyToArrayAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst_array:rdi src:rcx bytes:r8 direction:r9.l stream:s0"},
    {"cudaMemcpyFromArray", ptds, runtime, any_runtime, KIND_COPY, "dst:rdi src_array:rsi bytes:r8 direction:r9.l"},
    {"cudaMemcpyFromArrayAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst:rdi src_array:rsi bytes:r8 direction:r9.l stream:s0"},
    {"cudaMemcpyArrayToArray", ptds, runtime, any_runtime, KIND_COPY,
     "dst_array:rdi src_array:rcx bytes:s0 direction:s1.l"},
    {"cudaMemcpy2D", ptds, runtime, any_runtime, KIND_COPY, "dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l"},
    {"cudaMemcpy2DAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst:rdi src:rdx bytes:r8 height:r9 direction:s0.l stream:s1"},
    {"cudaMemcpy2DToArray", ptds, runtime, any_runtime, KIND_COPY,
     "dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l"},
    {"cudaMemcpy2DToArrayAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst_array:rdi src:rcx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"cudaMemcpy2DFromArray", ptds, runtime, any_runtime, KIND_COPY,
     "dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l"},
    {"cudaMemcpy2DFromArrayAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async dst:rdi src_array:rdx bytes:r9 height:s0 direction:s1.l stream:s2"},
    {"cudaMemcpy2DArrayToArray", ptds, runtime, any_runtime, KIND_COPY,
     "dst_array:rdi src_array:rcx bytes:s0 height:s1 direction:s2.l"},
    {"cudaMemcpy3D", ptds, runtime, any_runtime, KIND_COPY, copy_3d_runtime},
    {"cudaMemcpy3DAsync", ptsz, runtime, any_runtime, KIND_COPY, {copy_3d_runtime, "async stream:rsi"}},
    {"cudaMemcpy3DPeer", ptds, runtime, any_runtime, KIND_COPY, copy_3d_peer_runtime},
    {"cudaMemcpy3DPeerAsync", ptsz, runtime, any_runtime, KIND_COPY, {copy_3d_peer_runtime, "async stream:rsi"}},
    {"cudaMemcpyBatchAsync", ptsz, runtime, cudart12, KIND_COPY_BATCH,
     "async dst:rdi src:rsi bytes:rdx count:rcx stream:s2"},
    {"cudaMemcpyBatchAsync", ptsz, runtime, cudart13, KIND_COPY_BATCH,
     "async dst:rdi src:rsi bytes:rdx count:rcx stream:s1"},
    {"cudaMemcpy3DBatchAsync", ptsz, runtime, cudart12, KIND_COPY_BATCH_3D,
     list_of({copies_3d, "stream:r8"}, copies_3d_words)},
    {"cudaMemcpy3DBatchAsync", ptsz, runtime, cudart13, KIND_COPY_BATCH_3D,
     list_of({copies_3d, "stream:rcx"}, copies_3d_words)},

    // Sets and prefetches, runtime. A cudaPitchedPtr and a cudaExtent by value lie on the stack.
    {"cudaMemset", ptds, runtime, any_runtime, KIND_COPY, "set dst:rdi bytes:rdx"},
    {"cudaMemsetAsync", ptsz, runtime, any_runtime, KIND_COPY, "async set dst:rdi bytes:rdx stream:rcx"},
    {"cudaMemset2D", ptds, runtime, any_runtime, KIND_COPY, "set dst:rdi bytes:rcx height:r8"},
    {"cudaMemset2DAsync", ptsz, runtime, any_runtime, KIND_COPY, "async set dst:rdi bytes:rcx height:r8 stream:r9"},
    {"cudaMemset3D", ptds, runtime, any_runtime, KIND_COPY, "set dst:s0 bytes:s4 height:s5 depth:s6"},
    {"cudaMemset3DAsync", ptsz, runtime, any_runtime, KIND_COPY,
     "async set dst:s0 bytes:s4 height:s5 depth:s6 stream:rsi"},
    {"cudaMemPrefetchAsync", ptsz, runtime, cudart11 | cudart12, KIND_COPY,
     "async prefetch dst:rdi bytes:rsi stream:rcx"},
    {"cudaMemPrefetchAsync", ptsz, runtime, cudart13, KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8"},
    {"cudaMemPrefetchAsync_v2", ptsz, runtime, cudart12, KIND_COPY, "async prefetch dst:rdi bytes:rsi stream:r8"},
    {"cudaMemPrefetchBatchAsync", ptsz, runtime, cudart13, KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},
    {"cudaMemDiscardAndPrefetchBatchAsync", ptsz, runtime, cudart13, KIND_COPY_BATCH,
     "async prefetch dst:rdi bytes:rsi count:rdx stream:s1"},

    // Waits. cuStreamWaitEvent is not here: the host does not wait in it.
    {"cuStreamSynchronize", ptsz, driver, any_runtime, KIND_WAIT, "wait-stream stream:rdi"},
    {"cuCtxSynchronize", single, driver, any_runtime, KIND_WAIT, "wait-context"},
    {"cuCtxSynchronize_v2", single, driver, any_runtime, KIND_WAIT, "wait-context handle:rdi"},
    {"cuEventSynchronize", single, driver, any_runtime, KIND_WAIT, "wait-event handle:rdi"},
    {"cuStreamWaitValue32", ptsz, driver, any_runtime, KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue32_v2", ptsz, driver, any_runtime, KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue64", ptsz, driver, any_runtime, KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamWaitValue64_v2", ptsz, driver, any_runtime, KIND_WAIT, "async wait-value stream:rdi"},
    {"cuStreamQuery", ptsz, driver, any_runtime, KIND_WAIT, "poll stream:rdi"},
    {"cuEventQuery", single, driver, any_runtime, KIND_WAIT, "poll handle:rdi"},
    {"cudaStreamSynchronize", ptsz, runtime, any_runtime, KIND_WAIT, "wait-stream stream:rdi"},
    {"cudaDeviceSynchronize", single, runtime, any_runtime, KIND_WAIT, "wait-context"},
    {"cudaThreadSynchronize", single, runtime, any_runtime, KIND_WAIT, "wait-context"},
    {"cudaEventSynchronize", single, runtime, any_runtime, KIND_WAIT, "wait-event handle:rdi"},
    {"cudaStreamQuery", ptsz, runtime, any_runtime, KIND_WAIT, "poll stream:rdi"},
    {"cudaEventQuery", single, runtime, any_runtime, KIND_WAIT, "poll handle:rdi"},

};

} // namespace

std::span<const TableEntry> call_entries()
{
    return table;
}

} // namespace gpusnoop
