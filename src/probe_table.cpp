// SPDX-License-Identifier: Apache-2.0
#include "probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr const char* launch_params = "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2";
// dim3 by value takes two registers: x and y packed in the first, z in the second.
constexpr const char* launch_dim3 = "func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0 stream:s1";

constexpr auto driver = Library::driver;
constexpr auto runtime = Library::runtime;

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
    {"cuStreamBeginCaptureToGraph", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamEndCapture", ptsz, driver, any_runtime, KIND_CAPTURE_END, "stream:rdi"},

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
    {"cuCtxPushCurrent", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPushCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPopCurrent", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cuCtxPopCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cudaSetDevice", single, runtime, any_runtime, KIND_DEVICE_SET, "device:rdi.l"},
};

} // namespace

std::span<const TableEntry> probe_table()
{
    return table;
}

} // namespace gpusnoop
