// SPDX-License-Identifier: Apache-2.0
// The runtime functions this form is linked with, by name: a table, because a static runtime's symbols cannot be looked
// up.
#include "symbols.hpp"

#define ALL_RUNTIMES(X)                                                                                                \
    X(__cudaGetKernel)                                                                                                 \
    X(__cudaLaunchKernel)                                                                                              \
    X(__cudaLaunchKernel_ptsz)                                                                                         \
    X(cudaGetLastError)                                                                                                \
    X(cudaGraphInstantiate)                                                                                            \
    X(cudaGraphLaunch)                                                                                                 \
    X(cudaGraphLaunch_ptsz)                                                                                            \
    X(cudaLaunchCooperativeKernel)                                                                                     \
    X(cudaLaunchCooperativeKernel_ptsz)                                                                                \
    X(cudaLaunchHostFunc)                                                                                              \
    X(cudaLaunchHostFunc_ptsz)                                                                                         \
    X(cudaLaunchKernel)                                                                                                \
    X(cudaLaunchKernelExC)                                                                                             \
    X(cudaLaunchKernelExC_ptsz)                                                                                        \
    X(cudaLaunchKernel_ptsz)                                                                                           \
    X(cudaSetDevice)                                                                                                   \
    X(cudaStreamAddCallback)                                                                                           \
    X(cudaStreamAddCallback_ptsz)                                                                                      \
    X(cudaStreamBeginCapture)                                                                                          \
    X(cudaStreamBeginCapture_ptsz)                                                                                     \
    X(cudaStreamCreate)                                                                                                \
    X(cudaStreamEndCapture)                                                                                            \
    X(cudaStreamEndCapture_ptsz)

#if RUNTIME_MAJOR == 12
#define RUNTIME_FUNCTIONS(X)                                                                                           \
    ALL_RUNTIMES(X)                                                                                                    \
    X(cudaLaunchCooperativeKernelMultiDevice)
#elif RUNTIME_MAJOR
#define RUNTIME_FUNCTIONS(X) ALL_RUNTIMES(X)
#else
#define RUNTIME_FUNCTIONS(X)
#endif

// The stand-in's control surface: weak, because a real runtime may be in its place.
#if RUNTIME_MAJOR
#define CONTROL_FUNCTIONS(X)                                                                                           \
    X(standin_runtime_function)                                                                                        \
    X(standin_runtime_handle)                                                                                          \
    X(standin_runtime_next_result)
#else
#define CONTROL_FUNCTIONS(X)
#endif

// Only the addresses are used here; callers know the types.
#define DECLARE(name) extern "C" int name();
#define DECLARE_WEAK(name) extern "C" [[gnu::weak]] int name();
RUNTIME_FUNCTIONS(DECLARE)
CONTROL_FUNCTIONS(DECLARE_WEAK)

namespace workload {

void* runtime_symbol([[maybe_unused]] const std::string& name)
{
#define COMPARE(function)                                                                                              \
    if (name == #function)                                                                                             \
        return reinterpret_cast<void*>(&function);
    RUNTIME_FUNCTIONS(COMPARE)
    CONTROL_FUNCTIONS(COMPARE)
    return nullptr;
}

} // namespace workload
