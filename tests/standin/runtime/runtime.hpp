// SPDX-License-Identifier: Apache-2.0
// What the parts of the stand-in runtime share. One source for libcudart.so.12 (CUDART 12), libcudart.so.13 (CUDART 13)
// and libcudart_static.a (CUDART 12 with hidden symbols).
#pragma once

#include "../abi.hpp"

#include <cstdint>

// An exported function of the runtime; a version script or -fvisibility=hidden decides who sees it. Not inlined, so
// that calls inside the library arrive at it too.
#define RUNTIME(name) extern "C" [[gnu::noinline]] int name

namespace standin {

// Driver functions the runtime uses: base name, CUDA version of the wanted form, parameters. Each is resolved for the
// legacy and for the per-thread default stream; where the driver has one form only, both are the same.
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
    X(cuStreamCreateWithPriority, 5050, (void**, unsigned, int))                                                       \
    X(cuStreamDestroy, 4000, (void*))                                                                                  \
    X(cuStreamSynchronize, 2000, (void*))                                                                              \
    X(cuStreamQuery, 2000, (void*))                                                                                    \
    X(cuStreamWaitEvent, 3020, (void*, void*, unsigned))                                                               \
    X(cuStreamBeginCapture, 10010, (void*, int))                                                                       \
    X(cuStreamEndCapture, 10000, (void*, void**))                                                                      \
    X(cuStreamIsCapturing, 10000, (void*, int*))                                                                       \
    X(cuEventCreate, 2000, (void**, unsigned))                                                                         \
    X(cuEventDestroy, 4000, (void*))                                                                                   \
    X(cuEventRecord, 2000, (void*, void*))                                                                             \
    X(cuEventSynchronize, 2000, (void*))                                                                               \
    X(cuEventQuery, 2000, (void*))                                                                                     \
    X(cuGraphCreate, 10000, (void**, unsigned))                                                                        \
    X(cuGraphDestroy, 10000, (void*))                                                                                  \
    X(cuGraphInstantiateWithFlags, 11040, (void**, void*, uint64_t))                                                   \
    X(cuGraphExecUpdate, 12000, (void*, void*, void*))                                                                 \
    X(cuGraphExecDestroy, 10000, (void*))                                                                              \
    X(cuGraphLaunch, 10000, (void*, void*))                                                                            \
    X(cuMemAlloc, 3020, (void**, size_t))                                                                              \
    X(cuMemAllocAsync, 11020, (void**, size_t, void*))                                                                 \
    X(cuMemAllocManaged, 6000, (void**, size_t, unsigned))                                                             \
    X(cuMemHostAlloc, 2020, (void**, size_t, unsigned))                                                                \
    X(cuMemFree, 3020, (void*))                                                                                        \
    X(cuMemFreeAsync, 11020, (void*, void*))                                                                           \
    X(cuMemFreeHost, 2000, (void*))                                                                                    \
    X(cuMemGetInfo, 3020, (size_t*, size_t*))                                                                          \
    X(cuMemcpy, 4000, (void*, const void*, size_t))                                                                    \
    X(cuMemcpyAsync, 4000, (void*, const void*, size_t, void*))                                                        \
    X(cuMemcpyHtoD, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyHtoDAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemcpyDtoH, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyDtoHAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemcpyDtoD, 3020, (void*, const void*, size_t))                                                                \
    X(cuMemcpyDtoDAsync, 3020, (void*, const void*, size_t, void*))                                                    \
    X(cuMemsetD8, 3020, (void*, unsigned char, size_t))                                                                \
    X(cuMemsetD8Async, 3020, (void*, unsigned char, size_t, void*))

struct Driver {
#define STANDIN_POINTER(name, version, parameters) int(*name[2]) parameters;
    STANDIN_DRIVER_FUNCTIONS(STANDIN_POINTER)
#undef STANDIN_POINTER
    int (*get_proc_address)(const char*, void**, int, uint64_t, int*);
};

enum StreamKind { legacy = 0, per_thread = 1 };

// Opens the driver on the first call; makes this thread's device current on each thread's first. 0, or why it failed.
int prepare();
const Driver& driver(); // after prepare()

int current_device();
int& last_error();

// Makes the function it ends up in set up a frame, which gcc otherwise leaves out where nothing needs the stack.
// Helpers that end here are always inlined, so that it is the exported function's.
[[gnu::always_inline]] inline void framed()
{
    asm volatile("" : : "r"(__builtin_frame_address(0)));
}

// Every runtime call ends here. It also keeps the compiler from turning the call of the driver into a jump: nested
// driver calls run on a deeper stack, as with the real runtime.
[[gnu::always_inline]] inline int finish(int result)
{
    framed();
    if (result) [[unlikely]]
        last_error() = result;
    return result;
}

// prepare(), then one driver call.
#define STANDIN_FORWARD(name, kind, ...)                                                                               \
    do {                                                                                                               \
        int result = standin::prepare();                                                                               \
        return standin::finish(result ? result : standin::driver().name[kind](__VA_ARGS__));                           \
    } while (0)

// The driver's function of a kernel, given as the stub's address or as a handle of __cudaGetKernel. Loads on first use.
int find_function(const void* stub_or_handle, void** function);

// Takes the result that a test armed for the next launch of this thread: 0 if none.
int take_armed_result();

} // namespace standin
