// SPDX-License-Identifier: Apache-2.0
// Initialization, devices and contexts. Device N has one primary context; a context never changes its device.
#include "capture.hpp"
#include "memory.hpp"

using namespace standin;

std::atomic<bool> standin::initialized{false};

namespace {

Context primary[device_count] = {{0}, {1}};

bool is_device(int device)
{
    return device >= 0 && device < device_count;
}

int release_objects(const Context* context)
{
    destroy_streams(context);
    release_all(context);
    return success;
}

} // namespace

DRIVER(cuInit)(unsigned flags)
{
    if (flags)
        return invalid_value;
    initialized = true;
    inject();
    return success;
}

DRIVER(cuDriverGetVersion)(int* version)
{
    *version = driver_version;
    return success;
}

DRIVER(cuDeviceGetCount)(int* count)
{
    *count = device_count;
    return initialized ? success : not_initialized;
}

DRIVER(cuCtxCreate_v2)(Context** out, unsigned, int device)
{
    if (!is_device(device))
        return invalid_device;
    if (thread.depth == static_cast<int>(std::size(thread.stack)))
        return invalid_value;
    thread.stack[thread.depth++] = *out = new Context{device};
    return success;
}

// The object is not deleted, because another thread may still have it on its context stack.
DRIVER(cuCtxDestroy_v2)(Context* context)
{
    if (!context)
        return invalid_context;
    if (current_context() == context)
        thread.depth--;
    return release_objects(context);
}

DRIVER(cuDevicePrimaryCtxRetain)(Context** out, int device)
{
    if (!initialized || !is_device(device))
        return initialized ? invalid_device : not_initialized;
    *out = &primary[device];
    return success;
}

// The context stays current and usable; everything it owned is released.
RETURNS(cuDevicePrimaryCtxReset_v2, (int device),
        is_device(device) ? release_objects(&primary[device]) : invalid_device)

DRIVER(cuCtxSetCurrent)(Context* context)
{
    if (!initialized)
        return not_initialized;
    thread.depth -= thread.depth > 0;
    if (context)
        thread.stack[thread.depth++] = context;
    return success;
}

DRIVER(cuCtxGetCurrent)(Context** out)
{
    *out = current_context();
    return initialized ? success : not_initialized;
}
