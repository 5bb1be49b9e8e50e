// SPDX-License-Identifier: Apache-2.0
// Memory pools, and memory imported from another process or API. Imported memory occupies no memory of the device.
#include "memory.hpp"

using namespace standin;

namespace {

int export_memory(Shared* out, uintptr_t address, Type type)
{
    if (!exists(address, types(type)))
        return invalid_value;
    *out = {.bytes = bytes_at(address)};
    return success;
}

int import_memory(Type type, uintptr_t* out, const Shared& from)
{
    bool valid = from.magic == Shared::magic_value;
    return allocate(type, valid ? out : nullptr, valid ? from.bytes : 0);
}

} // namespace

// Allocations from a pool outlive the pool.
RETURNS(cuMemPoolCreate, (uintptr_t * out, const PoolProperties*), allocate(Type::pool, out, 0))
RETURNS(cuMemPoolDestroy, (uintptr_t pool), release(pool, types(Type::pool)))
RETURNS(cuMemPoolTrimTo, (uintptr_t pool, size_t), exists(pool, types(Type::pool)) ? success : invalid_value)
RETURNS(cuMemPoolExportPointer, (Shared * out, uintptr_t address), export_memory(out, address, Type::ordered))
RETURNS(cuMemPoolImportPointer, (uintptr_t * out, uintptr_t, const Shared* from),
        import_memory(Type::pool_pointer, out, *from))

RETURNS(cuIpcGetMemHandle, (Shared * out, uintptr_t address), export_memory(out, address, Type::linear))
RETURNS(cuIpcOpenMemHandle, (uintptr_t * out, Shared handle, unsigned), import_memory(Type::ipc, out, handle))
RETURNS(cuIpcOpenMemHandle_v2, (uintptr_t * out, Shared handle, unsigned), import_memory(Type::ipc, out, handle))
RETURNS(cuIpcCloseMemHandle, (uintptr_t address), release(address, types(Type::ipc)))

RETURNS(cuImportExternalMemory, (uintptr_t * out, const ExternalMemory* from),
        allocate(Type::external, out, from->bytes))
DRIVER(cuExternalMemoryGetMappedBuffer)(uintptr_t* out, uintptr_t memory, const ExternalBuffer* part)
{
    bool valid = exists(memory, types(Type::external)) && part->offset + part->bytes <= bytes_at(memory);
    return allocate(Type::buffer, valid ? out : nullptr, part->bytes);
}
RETURNS(cuDestroyExternalMemory, (uintptr_t memory), release(memory, types(Type::external), invalid_handle))
