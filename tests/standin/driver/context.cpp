// SPDX-License-Identifier: Apache-2.0
// Initialization, devices and contexts. Device N has one primary context; a context never changes its device.
#include "capture.hpp"
#include "memory.hpp"

#include <cstdio>
#include <cstring>

using namespace standin;

namespace standin {

std::atomic<bool> initialized{false};

namespace {

Context primary[device_count] = {{0}, {1}};

int create(Context** out, int device)
{
    if (!out || device < 0 || device >= device_count)
        return out ? invalid_device : invalid_value;
    if (thread.depth == static_cast<int>(std::size(thread.stack)))
        return invalid_value;
    thread.stack[thread.depth++] = *out = new Context{device};
    return success;
}

} // namespace
} // namespace standin

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
    if (!version)
        return invalid_value;
    *version = driver_version;
    return success;
}

DRIVER(cuDeviceGetCount)(int* count)
{
    if (!initialized)
        return not_initialized;
    *count = device_count;
    return success;
}

DRIVER(cuDeviceGet)(int* device, int ordinal)
{
    if (!initialized)
        return not_initialized;
    if (ordinal < 0 || ordinal >= device_count)
        return invalid_device;
    *device = ordinal;
    return success;
}

DRIVER(cuDeviceGetName)(char* name, int length, int device)
{
    if (device < 0 || device >= device_count)
        return invalid_device;
    snprintf(name, length, "Stand-in GPU %d", device);
    return success;
}

DRIVER(cuDeviceGetUuid)(unsigned char* uuid, int device)
{
    memset(uuid, 0, 16);
    uuid[15] = static_cast<unsigned char>(device);
    return success;
}

DRIVER(cuDeviceGetUuid_v2)(unsigned char* uuid, int device)
{
    return impl_cuDeviceGetUuid(uuid, device);
}

DRIVER(cuDeviceGetAttribute)(int* value, int, int)
{
    *value = 1;
    return success;
}

DRIVER(cuDeviceTotalMem_v2)(size_t* bytes, int)
{
    *bytes = device_memory;
    return success;
}

DRIVER(cuCtxCreate_v2)(Context** out, unsigned, int device)
{
    return create(out, device);
}

DRIVER(cuCtxCreate_v3)(Context** out, void*, int, unsigned, int device)
{
    return create(out, device);
}

DRIVER(cuCtxCreate_v4)(Context** out, void*, unsigned, int device)
{
    return create(out, device);
}

// The object is not deleted, because another thread may still have it on its context stack.
DRIVER(cuCtxDestroy_v2)(Context* context)
{
    if (!context)
        return invalid_context;
    if (current_context() == context)
        thread.depth--;
    destroy_streams(context);
    release_all(context);
    return success;
}

DRIVER(cuDevicePrimaryCtxRetain)(Context** out, int device)
{
    if (!initialized)
        return not_initialized;
    if (device < 0 || device >= device_count)
        return invalid_device;
    *out = &primary[device];
    return success;
}

// The context stays current and usable; everything it owned is released.
DRIVER(cuDevicePrimaryCtxReset_v2)(int device)
{
    if (device < 0 || device >= device_count)
        return invalid_device;
    destroy_streams(&primary[device]);
    release_all(&primary[device]);
    return success;
}

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
    if (!initialized)
        return not_initialized;
    *out = current_context();
    return success;
}

DRIVER(cuCtxPushCurrent_v2)(Context* context)
{
    if (!context || thread.depth == static_cast<int>(std::size(thread.stack)))
        return invalid_context;
    thread.stack[thread.depth++] = context;
    return success;
}

DRIVER(cuCtxPopCurrent_v2)(Context** out)
{
    if (!thread.depth)
        return invalid_context;
    thread.depth--;
    if (out)
        *out = thread.stack[thread.depth];
    return success;
}

DRIVER(cuCtxGetDevice)(int* device)
{
    if (!current_context())
        return invalid_context;
    *device = current_context()->device;
    return success;
}
