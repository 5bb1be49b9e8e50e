// SPDX-License-Identifier: Apache-2.0
// Arrays. The stand-in keeps only a handle, and the number of bytes that the descriptor specifies.
#include "memory.hpp"

using namespace standin;

namespace {

int create(Type type, uintptr_t* out, const Array3DDescriptor* d, unsigned levels = 1)
{
    return allocate(type, d ? out : nullptr, d ? bytes_of(*d, levels) : 0);
}

} // namespace

DRIVER(cuArrayCreate_v2)(uintptr_t* out, const ArrayDescriptor* d)
{
    Array3DDescriptor flat =
        d ? Array3DDescriptor{d->width, d->height, 0, d->format, d->channels, 0} : Array3DDescriptor{};
    return create(Type::array, out, d ? &flat : nullptr);
}
DRIVER(cuArray3DCreate_v2)(uintptr_t* out, const Array3DDescriptor* d)
{
    return create(Type::array, out, d);
}
DRIVER(cuMipmappedArrayCreate)(uintptr_t* out, const Array3DDescriptor* d, unsigned levels)
{
    return create(Type::mipmapped, out, d, levels);
}
DRIVER(cuArrayDestroy)(uintptr_t handle)
{
    return release(handle, types(Type::array), invalid_handle);
}
DRIVER(cuMipmappedArrayDestroy)(uintptr_t handle)
{
    return release(handle, types(Type::mipmapped), invalid_handle);
}
