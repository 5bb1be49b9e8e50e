// SPDX-License-Identifier: Apache-2.0
// Launches of kernels and host functions. Kernels do nothing, except that kernels named spin_us_N keep the device busy
// (spin.hpp). A host function runs at once on the calling thread.
#include "capture.hpp"
#include "spin.hpp"

using namespace standin;

namespace {

bool empty(const Dim3& d)
{
    return !d.x || !d.y || !d.z;
}

int launch(void* function, const Dim3& grid, const Dim3& block, unsigned shared, Stream* stream)
{
    if (int result = begin(Class::launch)) [[unlikely]]
        return result;
    if (!function) [[unlikely]]
        return invalid_handle;
    if (empty(grid) || empty(block)) [[unlikely]]
        return invalid_value;
    if (capturing(stream)) [[unlikely]] {
        int result = record(stream, kernel_node(function, grid, block, shared));
        if (!result)
            count(Class::recorded);
        return result;
    }
    start_kernel(function);
    return success;
}

// For functions older than CUDA 4, whose block shape is set by other calls.
int launch_grid(Function* function, int width, int height, Stream* stream)
{
    return launch(function, {unsigned(width), unsigned(height), 1}, function ? function->block : Dim3{},
                  function ? function->shared : 0, stream);
}

} // namespace

#define SHAPE                                                                                                          \
    unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, Stream *stream
RETURNS(cuLaunchKernel, (void* function, SHAPE, void**, void**),
        launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream))
RETURNS(cuLaunchCooperativeKernel, (void* function, SHAPE, void**),
        launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream))
DRIVER(cuLaunchKernelEx)(const LaunchConfig* config, void* function, void**, void**)
{
    if (!config)
        return invalid_value;
    return launch(function, config->grid, config->block, static_cast<unsigned>(config->shared),
                  static_cast<Stream*>(config->stream));
}
// One call launches on all devices, but counts as one launch in the driver's counters.
DRIVER(cuLaunchCooperativeKernelMultiDevice)(const DriverLaunchParams* list, unsigned devices, unsigned)
{
    if (!list || !devices)
        return invalid_value;
    return launch(list->function, list->grid, list->block, list->shared, static_cast<Stream*>(list->stream));
}
RETURNS(cuLaunch, (Function * function), launch_grid(function, 1, 1, nullptr))
RETURNS(cuLaunchGrid, (Function * function, int width, int height), launch_grid(function, width, height, nullptr))
RETURNS(cuLaunchGridAsync, (Function * function, int width, int height, Stream* stream),
        launch_grid(function, width, height, stream))

DRIVER(cuLaunchHostFunc)(Stream* stream, HostFunction function, void* argument)
{
    if (int result = begin(Class::host))
        return result;
    if (!function)
        return invalid_value;
    if (capturing(stream))
        return record(stream, host_node(function, argument));
    function(argument);
    return success;
}

DRIVER(cuStreamAddCallback)(Stream* stream, StreamCallback callback, void* argument, unsigned)
{
    if (int result = begin(Class::host))
        return result;
    if (!callback)
        return invalid_value;
    if (capturing(stream))
        return refuse_under_capture(stream);
    callback(stream, success, argument);
    return success;
}
