// SPDX-License-Identifier: Apache-2.0
// Runtime functions that this form is linked with, by name. This is a table, because dlsym() does not find the
// functions of a static runtime.
#include "symbols.hpp"

// Functions with a variant for the per-thread default stream. FOUR: a function without a stream, one with a stream, and
// the per-thread variants of both.
#define PTSZ(X, name)                                                                                                  \
    X(name)                                                                                                            \
    X(name##_ptsz)
#define PTDS(X, name)                                                                                                  \
    X(name)                                                                                                            \
    X(name##_ptds)
#define FOUR(X, name)                                                                                                  \
    PTDS(X, name)                                                                                                      \
    PTSZ(X, name##Async)

#define ALL_RUNTIMES(X)                                                                                                \
    X(__cudaGetKernel)                                                                                                 \
    PTSZ(X, __cudaLaunchKernel)                                                                                        \
    X(cudaDestroyExternalMemory)                                                                                       \
    X(cudaDeviceGraphMemTrim)                                                                                          \
    X(cudaDeviceReset)                                                                                                 \
    X(cudaDeviceSynchronize)                                                                                           \
    X(cudaEventCreate)                                                                                                 \
    X(cudaEventDestroy)                                                                                                \
    X(cudaEventQuery)                                                                                                  \
    PTSZ(X, cudaEventRecord)                                                                                           \
    PTSZ(X, cudaEventRecordWithFlags)                                                                                  \
    X(cudaEventSynchronize)                                                                                            \
    X(cudaExternalMemoryGetMappedBuffer)                                                                               \
    X(cudaFree)                                                                                                        \
    X(cudaFreeArray)                                                                                                   \
    PTSZ(X, cudaFreeAsync)                                                                                             \
    X(cudaFreeHost)                                                                                                    \
    X(cudaFreeMipmappedArray)                                                                                          \
    X(cudaGetLastError)                                                                                                \
    X(cudaGraphAddChildGraphNode)                                                                                      \
    X(cudaGraphAddEmptyNode)                                                                                           \
    X(cudaGraphAddEventRecordNode)                                                                                     \
    X(cudaGraphAddEventWaitNode)                                                                                       \
    X(cudaGraphAddExternalSemaphoresSignalNode)                                                                        \
    X(cudaGraphAddExternalSemaphoresWaitNode)                                                                          \
    X(cudaGraphAddHostNode)                                                                                            \
    X(cudaGraphAddKernelNode)                                                                                          \
    X(cudaGraphAddMemAllocNode)                                                                                        \
    X(cudaGraphAddMemFreeNode)                                                                                         \
    X(cudaGraphAddMemcpyNode)                                                                                          \
    X(cudaGraphAddMemcpyNode1D)                                                                                        \
    X(cudaGraphAddMemcpyNodeFromSymbol)                                                                                \
    X(cudaGraphAddMemcpyNodeToSymbol)                                                                                  \
    X(cudaGraphAddMemsetNode)                                                                                          \
    X(cudaGraphAddNode)                                                                                                \
    X(cudaGraphClone)                                                                                                  \
    X(cudaGraphConditionalHandleCreate)                                                                                \
    X(cudaGraphCreate)                                                                                                 \
    X(cudaGraphDestroy)                                                                                                \
    X(cudaGraphDestroyNode)                                                                                            \
    X(cudaGraphExecChildGraphNodeSetParams)                                                                            \
    X(cudaGraphExecDestroy)                                                                                            \
    X(cudaGraphExecEventRecordNodeSetEvent)                                                                            \
    X(cudaGraphExecEventWaitNodeSetEvent)                                                                              \
    X(cudaGraphExecExternalSemaphoresSignalNodeSetParams)                                                              \
    X(cudaGraphExecExternalSemaphoresWaitNodeSetParams)                                                                \
    X(cudaGraphExecHostNodeSetParams)                                                                                  \
    X(cudaGraphExecKernelNodeSetParams)                                                                                \
    X(cudaGraphExecMemcpyNodeSetParams)                                                                                \
    X(cudaGraphExecMemcpyNodeSetParams1D)                                                                              \
    X(cudaGraphExecMemcpyNodeSetParamsFromSymbol)                                                                      \
    X(cudaGraphExecMemcpyNodeSetParamsToSymbol)                                                                        \
    X(cudaGraphExecMemsetNodeSetParams)                                                                                \
    X(cudaGraphExecNodeSetParams)                                                                                      \
    X(cudaGraphExecUpdate)                                                                                             \
    X(cudaGraphGetNodes)                                                                                               \
    X(cudaGraphInstantiate)                                                                                            \
    X(cudaGraphInstantiateWithFlags)                                                                                   \
    PTSZ(X, cudaGraphInstantiateWithParams)                                                                            \
    PTSZ(X, cudaGraphLaunch)                                                                                           \
    X(cudaGraphNodeSetEnabled)                                                                                         \
    PTSZ(X, cudaGraphUpload)                                                                                           \
    X(cudaHostAlloc)                                                                                                   \
    X(cudaHostRegister)                                                                                                \
    X(cudaHostUnregister)                                                                                              \
    X(cudaImportExternalMemory)                                                                                        \
    X(cudaIpcCloseMemHandle)                                                                                           \
    X(cudaIpcGetMemHandle)                                                                                             \
    X(cudaIpcOpenMemHandle)                                                                                            \
    PTSZ(X, cudaLaunchCooperativeKernel)                                                                               \
    PTSZ(X, cudaLaunchHostFunc)                                                                                        \
    PTSZ(X, cudaLaunchKernel)                                                                                          \
    PTSZ(X, cudaLaunchKernelExC)                                                                                       \
    X(cudaMalloc)                                                                                                      \
    X(cudaMalloc3D)                                                                                                    \
    X(cudaMalloc3DArray)                                                                                               \
    X(cudaMallocArray)                                                                                                 \
    PTSZ(X, cudaMallocAsync)                                                                                           \
    PTSZ(X, cudaMallocFromPoolAsync)                                                                                   \
    X(cudaMallocHost)                                                                                                  \
    X(cudaMallocManaged)                                                                                               \
    X(cudaMallocMipmappedArray)                                                                                        \
    X(cudaMallocPitch)                                                                                                 \
    X(cudaMemPoolCreate)                                                                                               \
    X(cudaMemPoolDestroy)                                                                                              \
    X(cudaMemPoolExportPointer)                                                                                        \
    X(cudaMemPoolImportPointer)                                                                                        \
    X(cudaMemPoolSetAttribute)                                                                                         \
    X(cudaMemPoolTrimTo)                                                                                               \
    PTSZ(X, cudaMemPrefetchAsync)                                                                                      \
    FOUR(X, cudaMemcpy)                                                                                                \
    FOUR(X, cudaMemcpy2D)                                                                                              \
    PTDS(X, cudaMemcpy2DArrayToArray)                                                                                  \
    FOUR(X, cudaMemcpy2DFromArray)                                                                                     \
    FOUR(X, cudaMemcpy2DToArray)                                                                                       \
    FOUR(X, cudaMemcpy3D)                                                                                              \
    FOUR(X, cudaMemcpy3DPeer)                                                                                          \
    PTDS(X, cudaMemcpyArrayToArray)                                                                                    \
    FOUR(X, cudaMemcpyFromArray)                                                                                       \
    FOUR(X, cudaMemcpyFromSymbol)                                                                                      \
    X(cudaMemcpyPeer)                                                                                                  \
    X(cudaMemcpyPeerAsync)                                                                                             \
    FOUR(X, cudaMemcpyToArray)                                                                                         \
    FOUR(X, cudaMemcpyToSymbol)                                                                                        \
    FOUR(X, cudaMemset)                                                                                                \
    FOUR(X, cudaMemset2D)                                                                                              \
    FOUR(X, cudaMemset3D)                                                                                              \
    X(cudaSetDevice)                                                                                                   \
    PTSZ(X, cudaStreamAddCallback)                                                                                     \
    PTSZ(X, cudaStreamBeginCapture)                                                                                    \
    PTSZ(X, cudaStreamBeginCaptureToGraph)                                                                             \
    X(cudaStreamCreate)                                                                                                \
    X(cudaStreamDestroy)                                                                                               \
    PTSZ(X, cudaStreamEndCapture)                                                                                      \
    PTSZ(X, cudaStreamQuery)                                                                                           \
    PTSZ(X, cudaStreamSynchronize)                                                                                     \
    PTSZ(X, cudaStreamWaitEvent)                                                                                       \
    X(cudaThreadExchangeStreamCaptureMode)

#if RUNTIME_MAJOR == 12
#define RUNTIME_FUNCTIONS(X)                                                                                           \
    ALL_RUNTIMES(X)                                                                                                    \
    X(cudaGraphAddNode_v2)                                                                                             \
    X(cudaLaunchCooperativeKernelMultiDevice)                                                                          \
    X(cudaThreadSynchronize)
#elif RUNTIME_MAJOR
#define RUNTIME_FUNCTIONS(X) ALL_RUNTIMES(X)
#else
#define RUNTIME_FUNCTIONS(X)
#endif

// Functions that newer versions added, and the stand-in's control functions. They are weak symbols, because the program
// may run with an older, real runtime that lacks them.
#if RUNTIME_MAJOR == 12
#define NEWER_FUNCTIONS(X)                                                                                             \
    PTSZ(X, cudaMemcpy3DBatchAsync)                                                                                    \
    PTSZ(X, cudaMemcpyBatchAsync)
#elif RUNTIME_MAJOR
#define NEWER_FUNCTIONS(X)                                                                                             \
    PTSZ(X, cudaMemPrefetchBatchAsync)                                                                                 \
    PTSZ(X, cudaMemcpy3DBatchAsync)                                                                                    \
    PTSZ(X, cudaMemcpyBatchAsync)
#else
#define NEWER_FUNCTIONS(X)
#endif
#if RUNTIME_MAJOR
#define CONTROL_FUNCTIONS(X)                                                                                           \
    X(standin_runtime_function)                                                                                        \
    X(standin_runtime_handle)                                                                                          \
    X(standin_runtime_next_result)
#else
#define CONTROL_FUNCTIONS(X)
#endif

// Declared without parameters, because only the addresses are used here.
#define DECLARE(name) extern "C" int name();
#define DECLARE_WEAK(name) extern "C" [[gnu::weak]] int name();
RUNTIME_FUNCTIONS(DECLARE)
NEWER_FUNCTIONS(DECLARE_WEAK)
CONTROL_FUNCTIONS(DECLARE_WEAK)

namespace workload {

void* runtime_symbol([[maybe_unused]] const std::string& name)
{
#define COMPARE(function)                                                                                              \
    if (name == #function)                                                                                             \
        return reinterpret_cast<void*>(&function);
    RUNTIME_FUNCTIONS(COMPARE)
    NEWER_FUNCTIONS(COMPARE)
    CONTROL_FUNCTIONS(COMPARE)
    return nullptr;
}

} // namespace workload
