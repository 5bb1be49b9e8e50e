// SPDX-License-Identifier: Apache-2.0
// Everything else the runtime can do: mostly one driver call each.
#include "runtime.hpp"

using namespace standin;

namespace {

constexpr int host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3;

[[gnu::always_inline]] inline int copy(StreamKind stream_kind, void* target, const void* source, size_t bytes, int kind)
{
    if (kind == host_to_device)
        STANDIN_FORWARD(cuMemcpyHtoD, stream_kind, target, source, bytes);
    if (kind == device_to_host)
        STANDIN_FORWARD(cuMemcpyDtoH, stream_kind, target, source, bytes);
    if (kind == device_to_device)
        STANDIN_FORWARD(cuMemcpyDtoD, stream_kind, target, source, bytes);
    if (kind == host_to_host)
        __builtin_memcpy(target, source, bytes);
    STANDIN_FORWARD(cuMemcpy, stream_kind, target, source, bytes);
}

[[gnu::always_inline]] inline int copy_async(StreamKind stream_kind, void* target, const void* source, size_t bytes,
                                             int kind, void* stream)
{
    if (kind == host_to_device)
        STANDIN_FORWARD(cuMemcpyHtoDAsync, stream_kind, target, source, bytes, stream);
    if (kind == device_to_host)
        STANDIN_FORWARD(cuMemcpyDtoHAsync, stream_kind, target, source, bytes, stream);
    if (kind == device_to_device)
        STANDIN_FORWARD(cuMemcpyDtoDAsync, stream_kind, target, source, bytes, stream);
    STANDIN_FORWARD(cuMemcpyAsync, stream_kind, target, source, bytes, stream);
}

} // namespace

// A runtime function with its per-thread twin, each of which is one driver call.
#define BOTH(name, parameters, function, ...)                                                                          \
    RUNTIME(name) parameters                                                                                           \
    {                                                                                                                  \
        STANDIN_FORWARD(function, legacy, __VA_ARGS__);                                                                \
    }                                                                                                                  \
    RUNTIME(name##_ptsz) parameters                                                                                    \
    {                                                                                                                  \
        STANDIN_FORWARD(function, per_thread, __VA_ARGS__);                                                            \
    }
#define ONE(name, parameters, function, ...)                                                                           \
    RUNTIME(name) parameters                                                                                           \
    {                                                                                                                  \
        STANDIN_FORWARD(function, legacy __VA_OPT__(, ) __VA_ARGS__);                                                  \
    }

ONE(cudaDeviceSynchronize, (), cuCtxSynchronize)
ONE(cudaStreamCreate, (void** stream), cuStreamCreate, stream, 0)
ONE(cudaStreamCreateWithFlags, (void** stream, unsigned flags), cuStreamCreate, stream, flags)
ONE(cudaStreamCreateWithPriority, (void** stream, unsigned flags, int priority), cuStreamCreateWithPriority, stream,
    flags, priority)
ONE(cudaStreamDestroy, (void* stream), cuStreamDestroy, stream)
BOTH(cudaStreamSynchronize, (void* stream), cuStreamSynchronize, stream)
BOTH(cudaStreamQuery, (void* stream), cuStreamQuery, stream)
BOTH(cudaStreamWaitEvent, (void* stream, void* event, unsigned flags), cuStreamWaitEvent, stream, event, flags)
BOTH(cudaStreamBeginCapture, (void* stream, int mode), cuStreamBeginCapture, stream, mode)
BOTH(cudaStreamEndCapture, (void* stream, void** graph), cuStreamEndCapture, stream, graph)
BOTH(cudaStreamIsCapturing, (void* stream, int* status), cuStreamIsCapturing, stream, status)

ONE(cudaEventCreate, (void** event), cuEventCreate, event, 0)
ONE(cudaEventCreateWithFlags, (void** event, unsigned flags), cuEventCreate, event, flags)
ONE(cudaEventDestroy, (void* event), cuEventDestroy, event)
ONE(cudaEventSynchronize, (void* event), cuEventSynchronize, event)
ONE(cudaEventQuery, (void* event), cuEventQuery, event)
BOTH(cudaEventRecord, (void* event, void* stream), cuEventRecord, event, stream)

// The form of 12 and 13: flags where 11 had three more arguments.
ONE(cudaGraphInstantiate, (void** exec, void* graph, uint64_t flags), cuGraphInstantiateWithFlags, exec, graph, flags)
ONE(cudaGraphInstantiateWithFlags, (void** exec, void* graph, uint64_t flags), cuGraphInstantiateWithFlags, exec, graph,
    flags)
ONE(cudaGraphCreate, (void** graph, unsigned flags), cuGraphCreate, graph, flags)
ONE(cudaGraphDestroy, (void* graph), cuGraphDestroy, graph)
ONE(cudaGraphExecDestroy, (void* exec), cuGraphExecDestroy, exec)
ONE(cudaGraphExecUpdate, (void* exec, void* graph, void* info), cuGraphExecUpdate, exec, graph, info)

ONE(cudaMalloc, (void** out, size_t bytes), cuMemAlloc, out, bytes)
BOTH(cudaMallocAsync, (void** out, size_t bytes, void* stream), cuMemAllocAsync, out, bytes, stream)
ONE(cudaMallocManaged, (void** out, size_t bytes, unsigned flags), cuMemAllocManaged, out, bytes, flags)
ONE(cudaMallocHost, (void** out, size_t bytes), cuMemHostAlloc, out, bytes, 0)
ONE(cudaHostAlloc, (void** out, size_t bytes, unsigned flags), cuMemHostAlloc, out, bytes, flags)
ONE(cudaFree, (void* address), cuMemFree, address)
BOTH(cudaFreeAsync, (void* address, void* stream), cuMemFreeAsync, address, stream)
ONE(cudaFreeHost, (void* address), cuMemFreeHost, address)
ONE(cudaMemGetInfo, (size_t * available, size_t* total), cuMemGetInfo, available, total)
ONE(cudaMemset, (void* address, int value, size_t bytes), cuMemsetD8, address, static_cast<unsigned char>(value), bytes)
BOTH(cudaMemsetAsync, (void* address, int value, size_t bytes, void* stream), cuMemsetD8Async, address,
     static_cast<unsigned char>(value), bytes, stream)

RUNTIME(cudaMemcpy)(void* target, const void* source, size_t bytes, int kind)
{
    return copy(legacy, target, source, bytes, kind);
}

RUNTIME(cudaMemcpy_ptds)(void* target, const void* source, size_t bytes, int kind)
{
    return copy(per_thread, target, source, bytes, kind);
}

RUNTIME(cudaMemcpyAsync)(void* target, const void* source, size_t bytes, int kind, void* stream)
{
    return copy_async(legacy, target, source, bytes, kind, stream);
}

RUNTIME(cudaMemcpyAsync_ptsz)(void* target, const void* source, size_t bytes, int kind, void* stream)
{
    return copy_async(per_thread, target, source, bytes, kind, stream);
}

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

// Flag 0 means what the caller was compiled for.
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
