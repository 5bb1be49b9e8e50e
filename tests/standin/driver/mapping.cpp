// SPDX-License-Identifier: Apache-2.0
// Memory behind handles: physical memory that programs map themselves, and arrays. The handle is the made-up address of
// the block; where it is mapped nobody has to know.
#include "../abi_memory.hpp"
#include "memory.hpp"

using namespace standin;

namespace {

int create_array(uintptr_t* out, size_t width, size_t height, size_t depth, unsigned channels)
{
    auto at_least_1 = [](size_t n) { return n ? n : 1; };
    return allocate(out, width * at_least_1(height) * at_least_1(depth) * channels);
}

} // namespace

DRIVER(cuMemCreate)(uintptr_t* out, size_t bytes, const void*, uint64_t)
{
    return allocate(out, bytes);
}
DRIVER(cuMemRelease)(uintptr_t handle)
{
    return release(handle);
}

DRIVER(cuMemAddressReserve)(uintptr_t* out, size_t bytes, size_t, uintptr_t, uint64_t)
{
    if (!out || !bytes)
        return invalid_value;
    *out = reserve_addresses(bytes);
    return success;
}

// One byte per channel, whatever the format: only the order of magnitude of memory in use depends on it.
DRIVER(cuArrayCreate_v2)(uintptr_t* out, const ArrayDescriptor* d)
{
    return d ? create_array(out, d->width, d->height, 1, d->channels) : invalid_value;
}
DRIVER(cuArrayDestroy)(uintptr_t handle)
{
    return release(handle);
}
