// SPDX-License-Identifier: Apache-2.0
// Shared by all parts of the stand-in runtime. The same source is compiled into libcudart.so.12 (CUDART=12),
// libcudart.so.13 (CUDART=13) and libcudart_static.a (CUDART=12, symbols hidden).
#pragma once

#include "../abi.hpp"
#include "../abi_allocation.hpp"
#include "../abi_graph.hpp"

#include <cstdint>

// Defines an exported function; a version script or -fvisibility=hidden sets its visibility. Not inlined, so that calls
// inside the library also hit a tracer's probe on the exported function.
#define RUNTIME(name) extern "C" [[gnu::noinline]] int name

namespace standin {

// Functions whose parameters differ between CUDA versions. Each runtime uses those of its own version.
#if CUDART < 13
#define STANDIN_DRIVER_VERSIONED(X)                                                                                    \
    X(cuMemcpyBatchAsync, 12080, (void**, void**, size_t*, size_t, void*, size_t*, size_t, size_t*, void*))            \
    X(cuMemcpy3DBatchAsync, 12080, (size_t, void*, size_t*, uint64_t, void*))                                          \
    X(cuMemPrefetchAsync, 8000, (const void*, size_t, int, void*))
#else
#define STANDIN_DRIVER_VERSIONED(X)                                                                                    \
    X(cuMemcpyBatchAsync, 13000, (void**, void**, size_t*, size_t, void*, size_t*, size_t, void*))                     \
    X(cuMemcpy3DBatchAsync, 13000, (size_t, void*, uint64_t, void*))                                                   \
    X(cuMemPrefetchAsync, 12020, (const void*, size_t, Location, unsigned, void*))                                     \
    X(cuMemPrefetchBatchAsync, 13000, (void**, size_t*, size_t, Location*, size_t*, size_t, uint64_t, void*))
#endif

// Graph functions, in the format described below.
#define STANDIN_GRAPH_FUNCTIONS(X)                                                                                     \
    X(cuStreamBeginCapture, 10010, (void*, int))                                                                       \
    X(cuStreamBeginCaptureToGraph, 12030, (void*, void*, const void*, const void*, size_t, int))                       \
    X(cuStreamEndCapture, 10000, (void*, void**))                                                                      \
    X(cuGraphCreate, 10000, (void**, unsigned))                                                                        \
    X(cuGraphClone, 10000, (void**, void*))                                                                            \
    X(cuGraphDestroy, 10000, (void*))                                                                                  \
    X(cuGraphGetNodes, 10000, (void*, void**, size_t*))                                                                \
    X(cuGraphConditionalHandleCreate, 12030, (uint64_t*, void*, void*, unsigned, unsigned))                            \
    X(cuGraphAddKernelNode, 12000, (void**, void*, const void*, size_t, const KernelNodeParams*))                      \
    X(cuGraphAddMemcpyNode, 10000, (void**, void*, const void*, size_t, const Copy3D*, void*))                         \
    X(cuGraphAddMemsetNode, 10000, (void**, void*, const void*, size_t, const MemsetNode*, void*))                     \
    X(cuGraphAddHostNode, 10000, (void**, void*, const void*, size_t, const HostNodeParams*))                          \
    X(cuGraphAddChildGraphNode, 10000, (void**, void*, const void*, size_t, void*))                                    \
    X(cuGraphAddEmptyNode, 10000, (void**, void*, const void*, size_t))                                                \
    X(cuGraphAddEventRecordNode, 11010, (void**, void*, const void*, size_t, void*))                                   \
    X(cuGraphAddEventWaitNode, 11010, (void**, void*, const void*, size_t, void*))                                     \
    X(cuGraphAddExternalSemaphoresSignalNode, 11020, (void**, void*, const void*, size_t, const void*))                \
    X(cuGraphAddExternalSemaphoresWaitNode, 11020, (void**, void*, const void*, size_t, const void*))                  \
    X(cuGraphAddMemAllocNode, 11040, (void**, void*, const void*, size_t, AllocationNode*))                            \
    X(cuGraphAddMemFreeNode, 11040, (void**, void*, const void*, size_t, void*))                                       \
    X(cuGraphInstantiateWithFlags, 11040, (void**, void*, uint64_t))                                                   \
    X(cuGraphInstantiateWithParams, 12000, (void**, void*, InstantiateParams*))                                        \
    X(cuGraphUpload, 11010, (void*, void*))                                                                            \
    X(cuGraphLaunch, 10000, (void*, void*))                                                                            \
    X(cuGraphExecUpdate, 12000, (void*, void*, void*))                                                                 \
    X(cuGraphExecDestroy, 10000, (void*))                                                                              \
    X(cuGraphExecNodeSetParams, 12020, (void*, void*, const GenericNode*))                                             \
    X(cuGraphExecKernelNodeSetParams, 12000, (void*, void*, const KernelNodeParams*))                                  \
    X(cuGraphExecMemcpyNodeSetParams, 10020, (void*, void*, const Copy3D*, void*))                                     \
    X(cuGraphExecMemsetNodeSetParams, 10020, (void*, void*, const MemsetNode*, void*))                                 \
    X(cuGraphExecHostNodeSetParams, 10020, (void*, void*, const HostNodeParams*))                                      \
    X(cuGraphExecChildGraphNodeSetParams, 11010, (void*, void*, void*))                                                \
    X(cuGraphExecEventRecordNodeSetEvent, 11010, (void*, void*, void*))                                                \
    X(cuGraphExecEventWaitNodeSetEvent, 11010, (void*, void*, void*))                                                  \
    X(cuGraphExecExternalSemaphoresSignalNodeSetParams, 11020, (void*, void*, const void*))                            \
    X(cuGraphExecExternalSemaphoresWaitNodeSetParams, 11020, (void*, void*, const void*))

// Driver functions that the runtime uses: base name, CUDA version that introduced these parameters, parameters. Each is
// looked up twice, for the legacy and for the per-thread default stream. If the driver has only one variant, both
// lookups return it.
#define STANDIN_DRIVER_FUNCTIONS(X)                                                                                    \
    X(cuDriverGetVersion, 2020, (int*))                                                                                \
    X(cuInit, 2000, (unsigned))                                                                                        \
    X(cuDeviceGetCount, 2000, (int*))                                                                                  \
    X(cuDevicePrimaryCtxRetain, 7000, (void**, int))                                                                   \
    X(cuCtxGetCurrent, 4000, (void**))                                                                                 \
    X(cuCtxSetCurrent, 4000, (void*))                                                                                  \
    X(cuCtxSynchronize, 2000, ())                                                                                      \
    X(cuLibraryLoadData, 12000, (void**, const void*, void*, void*, unsigned, void*, void*, unsigned))                 \
    X(cuLibraryGetKernel, 12000, (void**, void*, const char*))                                                         \
    X(cuKernelGetFunction, 12000, (void**, void*))                                                                     \
    X(cuLaunchKernel, 4000,                                                                                            \
      (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**))            \
    X(cuLaunchCooperativeKernel, 9000,                                                                                 \
      (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**))                    \
    X(cuLaunchKernelEx, 11060, (const void*, void*, void**, void**))                                                   \
    X(cuLaunchHostFunc, 10000, (void*, HostFunction, void*))                                                           \
    X(cuStreamAddCallback, 5000, (void*, StreamCallback, void*, unsigned))                                             \
    X(cuStreamCreate, 2000, (void**, unsigned))                                                                        \
    X(cuStreamDestroy, 4000, (void*))                                                                                  \
    X(cuStreamSynchronize, 2000, (void*))                                                                              \
    X(cuStreamQuery, 2000, (void*))                                                                                    \
    X(cuStreamWaitEvent, 3020, (void*, void*, unsigned))                                                               \
    X(cuEventCreate, 2000, (void**, unsigned))                                                                         \
    X(cuEventDestroy, 4000, (void*))                                                                                   \
    X(cuEventRecord, 2000, (void*, void*))                                                                             \
    X(cuEventSynchronize, 2000, (void*))                                                                               \
    X(cuEventQuery, 2000, (void*))                                                                                     \
    X(cuDevicePrimaryCtxReset, 11000, (int))                                                                           \
    X(cuMemAlloc, 3020, (void**, size_t))                                                                              \
    X(cuMemAllocPitch, 3020, (void**, size_t*, size_t, size_t, unsigned))                                              \
    X(cuMemAllocAsync, 11020, (void**, size_t, void*))                                                                 \
    X(cuMemAllocFromPoolAsync, 11020, (void**, size_t, void*, void*))                                                  \
    X(cuMemAllocManaged, 6000, (void**, size_t, unsigned))                                                             \
    X(cuMemHostAlloc, 2020, (void**, size_t, unsigned))                                                                \
    X(cuMemHostRegister, 6050, (void*, size_t, unsigned))                                                              \
    X(cuMemHostUnregister, 4000, (void*))                                                                              \
    X(cuMemFree, 3020, (void*))                                                                                        \
    X(cuMemFreeAsync, 11020, (void*, void*))                                                                           \
    X(cuMemFreeHost, 2000, (void*))                                                                                    \
    X(cuArray3DCreate, 3020, (void**, const Array3DDescriptor*))                                                       \
    X(cuMipmappedArrayCreate, 5000, (void**, const Array3DDescriptor*, unsigned))                                      \
    X(cuArrayDestroy, 2000, (void*))                                                                                   \
    X(cuMipmappedArrayDestroy, 5000, (void*))                                                                          \
    X(cuMemPoolCreate, 11020, (void**, const PoolProperties*))                                                         \
    X(cuMemPoolDestroy, 11020, (void*))                                                                                \
    X(cuMemPoolTrimTo, 11020, (void*, size_t))                                                                         \
    X(cuMemPoolExportPointer, 11020, (Shared*, void*))                                                                 \
    X(cuMemPoolImportPointer, 11020, (void**, void*, const Shared*))                                                   \
    X(cuIpcGetMemHandle, 4010, (Shared*, void*))                                                                       \
    X(cuIpcOpenMemHandle, 11000, (void**, Shared, unsigned))                                                           \
    X(cuIpcCloseMemHandle, 4010, (void*))                                                                              \
    X(cuImportExternalMemory, 10000, (void**, const ExternalMemory*))                                                  \
    X(cuExternalMemoryGetMappedBuffer, 10000, (void**, void*, const ExternalBuffer*))                                  \
    X(cuDestroyExternalMemory, 10000, (void*))                                                                         \
    X(cuDeviceGraphMemTrim, 11040, (int))                                                                              \
    X(cuMemcpy, 4000, (void*, const void*, size_t))                                                                    \
    X(cuMemcpyAsync, 4000, (void*, const void*, size_t, void*))                                                        \
    X(cuMemcpyHtoD, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyHtoDAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemcpyDtoH, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyDtoHAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemcpyDtoD, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyDtoDAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemcpyPeer, 4000, (void*, void*, const void*, void*, size_t))                                                  \
    X(cuMemcpyPeerAsync, 4000, (void*, void*, const void*, void*, size_t, void*))                                      \
    X(cuMemcpy2DUnaligned, 3020, (const Copy2D*))                                                                      \
    X(cuMemcpy2DAsync, 3020, (const Copy2D*, void*))                                                                   \
    X(cuMemcpy3D, 3020, (const Copy3D*))                                                                               \
    X(cuMemcpy3DAsync, 3020, (const Copy3D*, void*))                                                                   \
    X(cuMemcpy3DPeer, 4000, (const Copy3D*))                                                                           \
    X(cuMemcpy3DPeerAsync, 4000, (const Copy3D*, void*))                                                               \
    X(cuMemsetD8, 3020, (void*, unsigned char, size_t))                                                                \
    X(cuMemsetD8Async, 3020, (void*, unsigned char, size_t, void*))                                                    \
    X(cuMemsetD2D8, 3020, (void*, size_t, unsigned char, size_t, size_t))                                              \
    X(cuMemsetD2D8Async, 3020, (void*, size_t, unsigned char, size_t, size_t, void*))                                  \
    STANDIN_GRAPH_FUNCTIONS(X)                                                                                         \
    STANDIN_DRIVER_VERSIONED(X)

struct Driver {
#define STANDIN_POINTER(name, version, parameters) int(*name[2]) parameters;
    STANDIN_DRIVER_FUNCTIONS(STANDIN_POINTER)
#undef STANDIN_POINTER
    int (*get_proc_address)(const char*, void**, int, uint64_t, int*);
    // The runtime of CUDA 12 uses both versions of cuGraphAddNode, without and with edge data.
    int (*add_node)(void**, void*, const void*, size_t, GenericNode*);
    int (*add_node_with_edges)(void**, void*, const void*, const void*, size_t, GenericNode*);
};

enum StreamKind { legacy = 0, per_thread = 1 };

// Opens the driver on the first call, and makes the device current on each thread's first call. Returns 0 or an error.
int prepare();
const Driver& driver(); // after prepare()

int current_device();
int& last_error();

// Returns and clears the result armed by a test for this thread's next call that would use the driver; 0 if none.
int take_armed_result();

// Forces the containing function to set up a stack frame, which gcc otherwise omits if the function does not use the
// stack. Helpers that call framed() are always inlined, so that the exported function has the frame.
[[gnu::always_inline]] inline void framed()
{
    asm volatile("" : : "r"(__builtin_frame_address(0)));
}

// Common end of every runtime call. It also keeps the compiler from calling the driver by a tail call: as in the real
// runtime, nested driver calls run deeper on the stack.
[[gnu::always_inline]] inline int finish(int result)
{
    framed();
    if (result) [[unlikely]]
        last_error() = result;
    return result;
}

// Returns an error that occurs before the driver is called (a result armed by a test, or no driver), or 0.
inline int before_call()
{
    int result = take_armed_result();
    return result ? result : prepare();
}

// Body of a function that calls before_call(), and then makes one driver call.
#define STANDIN_FORWARD(name, kind, ...)                                                                               \
    do {                                                                                                               \
        int result = standin::before_call();                                                                           \
        return standin::finish(result ? result : standin::driver().name[kind](__VA_ARGS__));                           \
    } while (0)

Copy3D volume(const RuntimeCopy3D&); // converts to the driver's structure

// The stand-in does not register device variables, so it uses the address of the host symbol.
inline void* variable(const void* symbol, size_t offset)
{
    return static_cast<char*>(const_cast<void*>(symbol)) + offset;
}

// Returns the address of a temporary, which is valid until the end of the full expression.
template<class T>
T* at(T&& value)
{
    return &value;
}

// Looks up the driver's function of a kernel, given as the stub's address or a handle of __cudaGetKernel. Loads the
// kernel on first use.
int find_function(const void* stub_or_handle, void** function);

} // namespace standin

// Functions that make one driver call each. STANDIN_ONE: without a variant for the per-thread default stream. The other
// macros also define this variant; its suffix is _ptsz if the function takes a stream, else _ptds.
#define STANDIN_ONE(name, parameters, function, ...)                                                                   \
    RUNTIME(name) parameters                                                                                           \
    {                                                                                                                  \
        STANDIN_FORWARD(function, standin::legacy __VA_OPT__(, ) __VA_ARGS__);                                         \
    }
#define STANDIN_WITH_VARIANT(name, variant, parameters, function, ...)                                                 \
    STANDIN_ONE(name, parameters, function, __VA_ARGS__)                                                               \
    RUNTIME(variant) parameters                                                                                        \
    {                                                                                                                  \
        STANDIN_FORWARD(function, standin::per_thread, __VA_ARGS__);                                                   \
    }
#define STANDIN_PTSZ(name, ...) STANDIN_WITH_VARIANT(name, name##_ptsz, __VA_ARGS__)
#define STANDIN_PTDS(name, ...) STANDIN_WITH_VARIANT(name, name##_ptds, __VA_ARGS__)
// The same, if the names of both functions only differ in cuda and cu.
#define STANDIN_SAME(name, parameters, ...) STANDIN_ONE(cuda##name, parameters, cu##name, __VA_ARGS__)
#define STANDIN_SAME_PTSZ(name, parameters, ...) STANDIN_PTSZ(cuda##name, parameters, cu##name, __VA_ARGS__)
