// SPDX-License-Identifier: Apache-2.0
// All other runtime functions. Most of them make one driver call.
#include "runtime.hpp"

using namespace standin;

STANDIN_ONE(cudaDeviceSynchronize, (), cuCtxSynchronize)
#if CUDART < 13
STANDIN_ONE(cudaThreadSynchronize, (), cuCtxSynchronize)
#endif
STANDIN_ONE(cudaDeviceReset, (), cuDevicePrimaryCtxReset, current_device())

STANDIN_ONE(cudaStreamCreate, (void** stream), cuStreamCreate, stream, 0)
STANDIN_ONE(cudaStreamCreateWithFlags, (void** stream, unsigned flags), cuStreamCreate, stream, flags)
STANDIN_ONE(cudaStreamCreateWithPriority, (void** stream, unsigned flags, int priority), cuStreamCreateWithPriority,
            stream, flags, priority)
STANDIN_ONE(cudaStreamDestroy, (void* stream), cuStreamDestroy, stream)
STANDIN_PTSZ(cudaStreamSynchronize, (void* stream), cuStreamSynchronize, stream)
STANDIN_PTSZ(cudaStreamQuery, (void* stream), cuStreamQuery, stream)
STANDIN_PTSZ(cudaStreamWaitEvent, (void* stream, void* event, unsigned flags), cuStreamWaitEvent, stream, event, flags)

STANDIN_ONE(cudaEventCreate, (void** event), cuEventCreate, event, 0)
STANDIN_ONE(cudaEventCreateWithFlags, (void** event, unsigned flags), cuEventCreate, event, flags)
STANDIN_ONE(cudaEventDestroy, (void* event), cuEventDestroy, event)
STANDIN_ONE(cudaEventSynchronize, (void* event), cuEventSynchronize, event)
STANDIN_ONE(cudaEventQuery, (void* event), cuEventQuery, event)
STANDIN_PTSZ(cudaEventRecord, (void* event, void* stream), cuEventRecord, event, stream)
STANDIN_PTSZ(cudaEventRecordWithFlags, (void* event, void* stream, unsigned flags), cuEventRecordWithFlags, event,
             stream, flags)

RUNTIME(cudaDriverGetVersion)(int* version)
{
    STANDIN_FORWARD(cuDriverGetVersion, legacy, version);
}

RUNTIME(cudaRuntimeGetVersion)(int* version)
{
    *version = CUDART == 12 ? 12090 : CUDART * 1000;
    return finish(success);
}

namespace {

// Flag 0 selects the function for the default stream that the caller was compiled for, legacy or per-thread.
[[gnu::always_inline]] inline int entry_point(StreamKind kind, const char* symbol, void** out, unsigned version,
                                              uint64_t flags, int* status)
{
    if (!flags && kind == per_thread)
        flags = 2;
    int result = prepare();
    return finish(result ? result : driver().get_proc_address(symbol, out, static_cast<int>(version), flags, status));
}

} // namespace

RUNTIME(cudaGetDriverEntryPoint)(const char* symbol, void** out, uint64_t flags, int* status)
{
    return entry_point(legacy, symbol, out, CUDART * 1000, flags, status);
}

RUNTIME(cudaGetDriverEntryPoint_ptsz)(const char* symbol, void** out, uint64_t flags, int* status)
{
    return entry_point(per_thread, symbol, out, CUDART * 1000, flags, status);
}

RUNTIME(cudaGetDriverEntryPointByVersion)(const char* symbol, void** out, unsigned version, uint64_t flags, int* status)
{
    return entry_point(legacy, symbol, out, version, flags, status);
}

RUNTIME(cudaGetDriverEntryPointByVersion_ptsz)
(const char* symbol, void** out, unsigned version, uint64_t flags, int* status)
{
    return entry_point(per_thread, symbol, out, version, flags, status);
}

RUNTIME(cudaGetLastError)()
{
    int result = last_error();
    last_error() = success;
    return result;
}

RUNTIME(cudaPeekAtLastError)()
{
    return last_error();
}

extern "C" const char* cudaGetErrorName(int code)
{
    framed();
    switch (code) {
    case 0:
        return "cudaSuccess";
    case 1:
        return "cudaErrorInvalidValue";
    case 2:
        return "cudaErrorMemoryAllocation";
    case 9:
        return "cudaErrorInvalidConfiguration";
    case 35:
        return "cudaErrorInsufficientDriver";
    case 98:
        return "cudaErrorInvalidDeviceFunction";
    case 100:
        return "cudaErrorNoDevice";
    case 101:
        return "cudaErrorInvalidDevice";
    case 400:
        return "cudaErrorInvalidResourceHandle";
    case 700:
        return "cudaErrorIllegalAddress";
    case 719:
        return "cudaErrorLaunchFailure";
    default:
        return "unrecognized error code";
    }
}

extern "C" const char* cudaGetErrorString(int code)
{
    framed();
    return cudaGetErrorName(code);
}
