// SPDX-License-Identifier: Apache-2.0
// A new function is a row.
#include "alloc.hpp"

#include "graph.hpp"
#include "kernels.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

using standin::Array3DDescriptor;
using standin::ChannelFormat;
using standin::Extent;

int plain(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, w.stream); // without Async the stream is not looked at
}

int with_flags(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, 1u);
}

int from_pool(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, w.pool, w.stream);
}

int pitched(void* f, Wanted& w)
{
    size_t pitch = 0;
    int result = call_symbol(f, &w.address, &pitch, w.width, w.height, 4u);
    w.bytes = result ? w.bytes : pitch * w.height;
    return result;
}

int pitched_volume(void* f, Wanted& w)
{
    standin::PitchedPointer out = {};
    size_t depth = std::max<size_t>(w.array.depth, 1);
    int result = call_symbol(f, &out, Extent{w.width, w.height / depth, depth});
    w.address = out.pointer;
    w.bytes = result ? w.bytes : out.pitch * w.height;
    return result;
}

int in_place(void* f, Wanted& w)
{
    return call_symbol(f, w.address, w.bytes, 0u);
}

int physical(void* f, Wanted& w)
{
    standin::AllocationProperties properties = {1, 0, w.location, nullptr, 0};
    return call_symbol(f, &w.address, w.bytes, w.unreadable ? w.unreadable : &properties, 0ull);
}

int flat_array(void* f, Wanted& w)
{
    standin::ArrayDescriptor descriptor = {w.array.width, w.array.height, w.array.format, w.array.channels};
    return call_symbol(f, &w.address, &descriptor);
}

int volume_array(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, &w.array, w.levels); // without levels they are not looked at
}

ChannelFormat channels(const Array3DDescriptor& d)
{
    int bits = static_cast<int>(8 * standin::bytes_of_format(d.format));
    auto kind = d.format >= 0x10 ? ChannelFormat::is_float
                : d.format >= 8  ? ChannelFormat::is_signed
                                 : ChannelFormat::is_unsigned;
    auto of = [&](unsigned channel) { return channel < d.channels ? bits : 0; };
    return {of(0), of(1), of(2), of(3), kind};
}

Extent extent(const Wanted& w)
{
    return {w.array.width, w.array.height, w.array.depth};
}

int runtime_array(void* f, Wanted& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, w.array.width, w.array.height, 0u);
}

int runtime_volume_array(void* f, Wanted& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, extent(w), 0u);
}

int runtime_mipmapped(void* f, Wanted& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, extent(w), w.levels, 0u);
}

int new_pool(void* f, Wanted& w)
{
    standin::PoolProperties properties = {};
    properties.type = 1;
    properties.location = w.location;
    return call_symbol(f, &w.address, &properties);
}

int ipc(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.shared, 1u);
}

int pool_pointer(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.pool, &w.shared);
}

int shareable(void* f, Wanted& w)
{
    constexpr int file_descriptor = 1;
    return call_symbol(f, &w.address, reinterpret_cast<void*>(static_cast<intptr_t>(w.file)), file_descriptor);
}

int external(void* f, Wanted& w)
{
    standin::ExternalMemory descriptor = {};
    descriptor.type = 1;
    descriptor.bytes = w.bytes;
    return call_symbol(f, &w.address, &descriptor);
}

int external_buffer(void* f, Wanted& w)
{
    standin::ExternalBuffer descriptor = {};
    descriptor.offset = w.source.offset;
    descriptor.bytes = w.bytes;
    return call_symbol(f, &w.address, w.source.address, &descriptor);
}

int new_multicast(void* f, Wanted& w)
{
    standin::MulticastProperties properties = {2, w.bytes, 1, 0};
    return call_symbol(f, &w.address, &properties);
}

int alloc_node(void* f, Wanted& w)
{
    standin::AllocationNode node = {};
    node.pool.location = w.location;
    node.bytes = w.bytes;
    void* out = nullptr;
    int result = call_symbol(f, &out, w.graph, nullptr, static_cast<size_t>(0), &node);
    w.address = reinterpret_cast<void*>(node.address);
    return result;
}

int free_node(void* f, void* address, void*)
{
    void* out = nullptr;
    return call_symbol(f, &out, graph_for_memory(), nullptr, static_cast<size_t>(0), address);
}

using enum standin::Holding;
#define SAME(name) name, name
const AllocRow rows[] = {
    {SAME("cuMemAlloc_v2"), "device", device, true, "cuMemFree_v2", plain},
    {SAME("cuMemAllocPitch_v2"), "device", device, true, "cuMemFree_v2", pitched},
    {SAME("cuMemAllocManaged"), "managed", managed, true, "cuMemFree_v2", with_flags},
    {SAME("cuMemAllocAsync"), "device", pool, false, "cuMemFreeAsync", plain},
    {SAME("cuMemAllocFromPoolAsync"), "device", pool, false, "cuMemFreeAsync", from_pool},
    {SAME("cuMemHostAlloc"), "pinned", pinned, true, "cuMemFreeHost", with_flags},
    {SAME("cuMemAllocHost_v2"), "pinned", pinned, true, "cuMemFreeHost", plain},
    {SAME("cuMemHostRegister_v2"), "registered", registered, true, "cuMemHostUnregister", in_place},
    {"cuMemMap", "cuMemCreate", "vmm", vmm, false, "cuMemRelease", physical},
    {SAME("cuMemCreate"), "vmm", vmm, false, "cuMemRelease", physical},
    {"array", "cuArrayCreate_v2", "array", array, true, "cuArrayDestroy", flat_array},
    {SAME("cuArrayCreate_v2"), "array", array, true, "cuArrayDestroy", flat_array},
    {SAME("cuArray3DCreate_v2"), "array", array, true, "cuArrayDestroy", volume_array},
    {SAME("cuMipmappedArrayCreate"), "array", array, true, "cuMipmappedArrayDestroy", volume_array},
    {SAME("cuMemPoolCreate"), "", pool_object, false, "cuMemPoolDestroy", new_pool},
    {SAME("cuMemPoolImportPointer"), "device", imported, false, "cuMemFreeAsync", pool_pointer, "",
     Source::pool_pointer},
    {SAME("cuIpcOpenMemHandle"), "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {SAME("cuIpcOpenMemHandle_v2"), "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {SAME("cuMemImportFromShareableHandle"), "vmm", imported, false, "cuMemRelease", shareable, "", Source::file},
    {SAME("cuImportExternalMemory"), "", imported, true, "cuDestroyExternalMemory", external},
    {SAME("cuExternalMemoryGetMappedBuffer"), "device", mapped, true, "cuMemFree_v2", external_buffer, "",
     Source::external},
    {SAME("cuMulticastCreate"), "", multicast, false, "cuMemRelease", new_multicast},
    {SAME("cuGraphAddMemAllocNode"), "device", graph, false, "cuGraphAddMemFreeNode", alloc_node, "", Source::graph},
    {SAME("cudaMalloc"), "device", device, true, "cudaFree", plain, "cuMemAlloc_v2"},
    {SAME("cudaMallocPitch"), "device", device, true, "cudaFree", pitched, "cuMemAllocPitch_v2"},
    {SAME("cudaMalloc3D"), "device", device, true, "cudaFree", pitched_volume, "cuMemAllocPitch_v2"},
    {SAME("cudaMallocManaged"), "managed", managed, true, "cudaFree", with_flags, "cuMemAllocManaged"},
    {SAME("cudaMallocAsync"), "device", pool, false, "cudaFreeAsync", plain, "cuMemAllocAsync"},
    {SAME("cudaMallocFromPoolAsync"), "device", pool, false, "cudaFreeAsync", from_pool, "cuMemAllocFromPoolAsync"},
    {SAME("cudaMallocHost"), "pinned", pinned, true, "cudaFreeHost", plain, "cuMemHostAlloc"},
    {SAME("cudaHostAlloc"), "pinned", pinned, true, "cudaFreeHost", with_flags, "cuMemHostAlloc"},
    {SAME("cudaHostRegister"), "registered", registered, true, "cudaHostUnregister", in_place, "cuMemHostRegister_v2"},
    {SAME("cudaMallocArray"), "array", array, true, "cudaFreeArray", runtime_array, "cuArray3DCreate_v2"},
    {SAME("cudaMalloc3DArray"), "array", array, true, "cudaFreeArray", runtime_volume_array, "cuArray3DCreate_v2"},
    {SAME("cudaMallocMipmappedArray"), "array", array, true, "cudaFreeMipmappedArray", runtime_mipmapped,
     "cuMipmappedArrayCreate"},
    {SAME("cudaMemPoolCreate"), "", pool_object, false, "cudaMemPoolDestroy", new_pool, "cuMemPoolCreate"},
    {SAME("cudaMemPoolImportPointer"), "device", imported, false, "cudaFreeAsync", pool_pointer,
     "cuMemPoolImportPointer", Source::pool_pointer},
    {SAME("cudaIpcOpenMemHandle"), "device", imported, true, "cudaIpcCloseMemHandle", ipc, "cuIpcOpenMemHandle_v2",
     Source::ipc},
    {SAME("cudaImportExternalMemory"), "", imported, true, "cudaDestroyExternalMemory", external,
     "cuImportExternalMemory"},
    {SAME("cudaExternalMemoryGetMappedBuffer"), "device", mapped, true, "cudaFree", external_buffer,
     "cuExternalMemoryGetMappedBuffer", Source::external},
    {SAME("cudaGraphAddMemAllocNode"), "device", graph, false, "cudaGraphAddMemFreeNode", alloc_node,
     "cuGraphAddMemAllocNode", Source::graph},
};

const FreeRow free_rows[] = {
    {"cuMemFree_v2"},
    {"cuMemFreeAsync"},
    {"cuMemFreeHost"},
    {"cuMemHostUnregister"},
    {"cuMemRelease"},
    {"cuArrayDestroy"},
    {"cuMipmappedArrayDestroy"},
    {"cuMemPoolDestroy"},
    {"cuIpcCloseMemHandle"},
    {"cuDestroyExternalMemory"},
    {"cuGraphAddMemFreeNode", "", free_node},
    {"cudaFree", "cuMemFree_v2"},
    {"cudaFreeAsync", "cuMemFreeAsync"},
    {"cudaFreeHost", "cuMemFreeHost"},
    {"cudaHostUnregister", "cuMemHostUnregister"},
    {"cudaFreeArray", "cuArrayDestroy"},
    {"cudaFreeMipmappedArray", "cuMipmappedArrayDestroy"},
    {"cudaMemPoolDestroy", "cuMemPoolDestroy"},
    {"cudaIpcCloseMemHandle", "cuIpcCloseMemHandle"},
    {"cudaDestroyExternalMemory", "cuDestroyExternalMemory"},
    {"cudaGraphAddMemFreeNode", "cuGraphAddMemFreeNode", free_node},
};

template<class Row, size_t n>
const Row* find(const Row (&list)[n], const std::string& function)
{
    auto row = std::ranges::find_if(list, [&](const Row& r) { return without_suffix(function) == r.name; });
    return row == std::end(list) ? nullptr : &*row;
}

} // namespace

const AllocRow* find_alloc_row(const std::string& function)
{
    return find(rows, function);
}

const FreeRow* find_free_row(const std::string& function)
{
    return find(free_rows, function);
}

int call_free(const FreeRow& row, void* function, void* address, void* stream)
{
    return row.call ? row.call(function, address, stream) : call_symbol(function, address, stream);
}

bool is_async(const std::string& function)
{
    return function.find("Async") != std::string::npos;
}

bool registers(const AllocRow& row)
{
    return row.call == in_place;
}

bool is_array(const AllocRow& row)
{
    return row.holding == standin::Holding::array;
}

bool is_physical(const AllocRow& row)
{
    return std::string(row.name) == "cuMemMap";
}

void* graph_for_memory()
{
    static void* made = [] {
        ready_driver();
        void* graph = nullptr;
        create_graph("cuGraphCreate", &graph);
        return graph;
    }();
    return made;
}

} // namespace workload
