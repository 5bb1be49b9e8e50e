// SPDX-License-Identifier: Apache-2.0
// Launches. Each makes exactly one driver launch on the same thread, unless it fails before: there is no driver, the
// kernel is not registered, or a test has armed a result. __cudaLaunchKernel, which jumps to cudaLaunchKernel, is in
// defaults.py.
#include "runtime.hpp"

using namespace standin;

// With FRAMES_BETWEEN, the exported function calls the driver through an inner function, as in NVIDIA's 11.8.
#ifdef FRAMES_BETWEEN
#define INNER_LAUNCH [[gnu::noinline]]
#else
#define INNER_LAUNCH [[gnu::always_inline]] inline
#endif

namespace {

// Returns an error that occurs before the driver is called, or 0.
inline int before_launch(const void* kernel, void** function)
{
    if (int result = before_call()) [[unlikely]]
        return result;
    return find_function(kernel, function);
}

INNER_LAUNCH int launch(StreamKind kind, const void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared,
                        void* stream)
{
    void* function = nullptr;
    if (int result = before_launch(kernel, &function)) [[unlikely]]
        return finish(result);
    return finish(driver().cuLaunchKernel[kind](function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                static_cast<unsigned>(shared), stream, arguments, nullptr));
}

INNER_LAUNCH int launch_cooperative(StreamKind kind, const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                    size_t shared, void* stream)
{
    void* function = nullptr;
    if (int result = before_launch(kernel, &function))
        return finish(result);
    return finish(driver().cuLaunchCooperativeKernel[kind](function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                           static_cast<unsigned>(shared), stream, arguments));
}

INNER_LAUNCH int launch_ex(StreamKind kind, const LaunchConfig* config, const void* kernel, void** arguments)
{
    void* function = nullptr;
    if (int result = before_launch(kernel, &function))
        return finish(result);
    return finish(driver().cuLaunchKernelEx[kind](config, function, arguments, nullptr));
}

INNER_LAUNCH int launch_host(StreamKind kind, void* stream, HostFunction function, void* argument)
{
    int result = before_call();
    return finish(result ? result : driver().cuLaunchHostFunc[kind](stream, function, argument));
}

INNER_LAUNCH int add_callback(StreamKind kind, void* stream, StreamCallback callback, void* argument, unsigned flags)
{
    int result = before_call();
    return finish(result ? result : driver().cuStreamAddCallback[kind](stream, callback, argument, flags));
}

} // namespace

// Defines a function and its variant for the per-thread default stream.
#define BOTH(name, parameters, inner, ...)                                                                             \
    RUNTIME(name) parameters                                                                                           \
    {                                                                                                                  \
        return inner(legacy, __VA_ARGS__);                                                                             \
    }                                                                                                                  \
    RUNTIME(name##_ptsz) parameters                                                                                    \
    {                                                                                                                  \
        return inner(per_thread, __VA_ARGS__);                                                                         \
    }
BOTH(cudaLaunchKernel, (const void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream),
     launch, kernel, grid, block, arguments, shared, stream)
BOTH(cudaLaunchCooperativeKernel,
     (const void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream), launch_cooperative,
     kernel, grid, block, arguments, shared, stream)
BOTH(cudaLaunchKernelExC, (const LaunchConfig* config, const void* kernel, void** arguments), launch_ex, config, kernel,
     arguments)
BOTH(cudaLaunchHostFunc, (void* stream, HostFunction function, void* argument), launch_host, stream, function, argument)
BOTH(cudaStreamAddCallback, (void* stream, StreamCallback callback, void* argument, unsigned flags), add_callback,
     stream, callback, argument, flags)

#if CUDART < 13
// It is unknown whether the real runtime uses the driver's multi-device call. The stand-in makes one cooperative launch
// per entry, until one fails.
RUNTIME(cudaLaunchCooperativeKernelMultiDevice)(const RuntimeLaunchParams* list, unsigned devices, unsigned)
{
    void* function = nullptr;
    int result = list && devices ? before_launch(list->function, &function) : invalid_value;
    for (unsigned i = 0; i < devices && !result; i++) {
        const auto& p = list[i];
        result = find_function(p.function, &function);
        if (!result)
            result = driver().cuLaunchCooperativeKernel[legacy](function, p.grid.x, p.grid.y, p.grid.z, p.block.x,
                                                                p.block.y, p.block.z, static_cast<unsigned>(p.shared),
                                                                p.stream, p.arguments);
    }
    return finish(result);
}
#endif
