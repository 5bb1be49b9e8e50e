// SPDX-License-Identifier: Apache-2.0
// Memory pools, and memory imported from another process or API. Imported memory occupies no memory of the device.
#include "memory.hpp"

using namespace standin;

namespace {

int export_memory(Shared* out, uintptr_t address)
{
    size_t bytes = bytes_at(address);
    if (!out || !bytes)
        return invalid_value;
    *out = {.bytes = bytes};
    return success;
}

int import_memory(Type type, uintptr_t* out, const Shared* from)
{
    bool valid = from && from->magic == Shared::magic_value;
    return allocate(type, valid ? out : nullptr, valid ? from->bytes : 0);
}

} // namespace

// Allocations from a pool outlive the pool.
DRIVER(cuMemPoolCreate)(uintptr_t* out, const PoolProperties* properties)
{
    return allocate(Type::pool, properties ? out : nullptr, 0);
}
DRIVER(cuMemPoolDestroy)(uintptr_t pool)
{
    return release(pool, types(Type::pool));
}
DRIVER(cuMemPoolTrimTo)(uintptr_t pool, size_t)
{
    return exists(pool, types(Type::pool)) ? success : invalid_value;
}
DRIVER(cuMemPoolSetAttribute)(uintptr_t pool, int, const void* value)
{
    return value && exists(pool, types(Type::pool)) ? success : invalid_value;
}
DRIVER(cuMemPoolExportPointer)(Shared* out, uintptr_t address)
{
    return export_memory(exists(address, types(Type::ordered)) ? out : nullptr, address);
}
DRIVER(cuMemPoolImportPointer)(uintptr_t* out, uintptr_t, const Shared* from)
{
    return import_memory(Type::pool_pointer, out, from);
}

DRIVER(cuIpcGetMemHandle)(Shared* out, uintptr_t address)
{
    return export_memory(exists(address, types(Type::linear)) ? out : nullptr, address);
}
DRIVER(cuIpcOpenMemHandle)(uintptr_t* out, Shared handle, unsigned)
{
    return import_memory(Type::ipc, out, &handle);
}
DRIVER(cuIpcOpenMemHandle_v2)(uintptr_t* out, Shared handle, unsigned)
{
    return import_memory(Type::ipc, out, &handle);
}
DRIVER(cuIpcCloseMemHandle)(uintptr_t address)
{
    return release(address, types(Type::ipc));
}

DRIVER(cuImportExternalMemory)(uintptr_t* out, const ExternalMemory* from)
{
    return allocate(Type::external, from ? out : nullptr, from ? from->bytes : 0);
}
DRIVER(cuExternalMemoryGetMappedBuffer)(uintptr_t* out, uintptr_t memory, const ExternalBuffer* part)
{
    bool valid = part && exists(memory, types(Type::external)) && part->offset + part->bytes <= bytes_at(memory);
    return allocate(Type::buffer, valid ? out : nullptr, valid ? part->bytes : 0);
}
DRIVER(cuDestroyExternalMemory)(uintptr_t memory)
{
    return release(memory, types(Type::external), invalid_handle);
}
