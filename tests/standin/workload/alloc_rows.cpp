// SPDX-License-Identifier: Apache-2.0
// Table of functions that allocate and free. To add a function, add a row.
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

int plain(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, w.bytes, w.stream); // functions without Async ignore the stream
}

int with_flags(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, w.bytes, 1u);
}

int from_pool(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, w.bytes, w.pool, w.stream);
}

int pitched(void* f, AllocRequest& w)
{
    size_t pitch = 0;
    int result = call_symbol(f, &w.address, &pitch, w.width, w.height, 4u);
    w.bytes = result ? w.bytes : pitch * w.height;
    return result;
}

int pitched_volume(void* f, AllocRequest& w)
{
    standin::PitchedPointer out = {};
    size_t depth = std::max<size_t>(w.array.depth, 1);
    int result = call_symbol(f, &out, Extent{w.width, w.height / depth, depth});
    w.address = out.pointer;
    w.bytes = result ? w.bytes : out.pitch * w.height;
    return result;
}

int in_place(void* f, AllocRequest& w)
{
    return call_symbol(f, w.address, w.bytes, 0u);
}

int physical(void* f, AllocRequest& w)
{
    standin::AllocationProperties properties = {1, 0, w.location, nullptr, 0};
    return call_symbol(f, &w.address, w.bytes, w.unreadable ? w.unreadable : &properties, 0ull);
}

int flat_array(void* f, AllocRequest& w)
{
    standin::ArrayDescriptor descriptor = {w.array.width, w.array.height, w.array.format, w.array.channels};
    return call_symbol(f, &w.address, &descriptor);
}

int volume_array(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, &w.array, w.levels); // functions without levels ignore them
}

ChannelFormat channels(const Array3DDescriptor& d)
{
    int bits = static_cast<int>(8 * standin::bytes_of_format(d.format));
    auto kind = d.format >= 0x10 ? ChannelFormat::is_float
                : d.format >= 8  ? ChannelFormat::is_signed
                                 : ChannelFormat::is_unsigned;
    auto bits_of = [&](unsigned channel) { return channel < d.channels ? bits : 0; };
    return {bits_of(0), bits_of(1), bits_of(2), bits_of(3), kind};
}

Extent extent(const AllocRequest& w)
{
    return {w.array.width, w.array.height, w.array.depth};
}

int runtime_array(void* f, AllocRequest& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, w.array.width, w.array.height, 0u);
}

int runtime_volume_array(void* f, AllocRequest& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, extent(w), 0u);
}

int runtime_mipmapped(void* f, AllocRequest& w)
{
    auto format = channels(w.array);
    return call_symbol(f, &w.address, &format, extent(w), w.levels, 0u);
}

int new_pool(void* f, AllocRequest& w)
{
    standin::PoolProperties properties = {};
    properties.type = 1;
    properties.location = w.location;
    return call_symbol(f, &w.address, &properties);
}

int ipc(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, w.shared, 1u);
}

int pool_pointer(void* f, AllocRequest& w)
{
    return call_symbol(f, &w.address, w.pool, &w.shared);
}

int shareable(void* f, AllocRequest& w)
{
    constexpr int file_descriptor = 1;
    return call_symbol(f, &w.address, reinterpret_cast<void*>(static_cast<intptr_t>(w.file)), file_descriptor);
}

int external(void* f, AllocRequest& w)
{
    standin::ExternalMemory descriptor = {};
    descriptor.type = 1;
    descriptor.bytes = w.bytes;
    return call_symbol(f, &w.address, &descriptor);
}

int external_buffer(void* f, AllocRequest& w)
{
    standin::ExternalBuffer descriptor = {};
    descriptor.offset = w.source.offset;
    descriptor.bytes = w.bytes;
    return call_symbol(f, &w.address, w.source.address, &descriptor);
}

int new_multicast(void* f, AllocRequest& w)
{
    standin::MulticastProperties properties = {2, w.bytes, 1, 0};
    return call_symbol(f, &w.address, &properties);
}

int alloc_node(void* f, AllocRequest& w)
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
#define SAME_NAME(name) name, name
const AllocRow rows[] = {
    {SAME_NAME("cuMemAlloc_v2"), "device", device, true, "cuMemFree_v2", plain},
    {SAME_NAME("cuMemAllocPitch_v2"), "device", device, true, "cuMemFree_v2", pitched},
    {SAME_NAME("cuMemAllocManaged"), "managed", managed, true, "cuMemFree_v2", with_flags},
    {SAME_NAME("cuMemAllocAsync"), "device", pool, false, "cuMemFreeAsync", plain},
    {SAME_NAME("cuMemAllocFromPoolAsync"), "device", pool, false, "cuMemFreeAsync", from_pool},
    {SAME_NAME("cuMemHostAlloc"), "pinned", pinned, true, "cuMemFreeHost", with_flags},
    {SAME_NAME("cuMemAllocHost_v2"), "pinned", pinned, true, "cuMemFreeHost", plain},
    {SAME_NAME("cuMemHostRegister_v2"), "registered", registered, true, "cuMemHostUnregister", in_place},
    {"cuMemMap", "cuMemCreate", "vmm", vmm, false, "cuMemRelease", physical},
    {SAME_NAME("cuMemCreate"), "vmm", vmm, false, "cuMemRelease", physical},
    {"array", "cuArrayCreate_v2", "array", array, true, "cuArrayDestroy", flat_array},
    {SAME_NAME("cuArrayCreate_v2"), "array", array, true, "cuArrayDestroy", flat_array},
    {SAME_NAME("cuArray3DCreate_v2"), "array", array, true, "cuArrayDestroy", volume_array},
    {SAME_NAME("cuMipmappedArrayCreate"), "array", array, true, "cuMipmappedArrayDestroy", volume_array},
    {SAME_NAME("cuMemPoolCreate"), "", pool_object, false, "cuMemPoolDestroy", new_pool},
    {SAME_NAME("cuMemPoolImportPointer"), "device", imported, false, "cuMemFreeAsync", pool_pointer, "",
     Source::pool_pointer},
    {SAME_NAME("cuIpcOpenMemHandle"), "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {SAME_NAME("cuIpcOpenMemHandle_v2"), "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {SAME_NAME("cuMemImportFromShareableHandle"), "vmm", imported, false, "cuMemRelease", shareable, "", Source::file},
    {SAME_NAME("cuImportExternalMemory"), "", imported, true, "cuDestroyExternalMemory", external},
    {SAME_NAME("cuExternalMemoryGetMappedBuffer"), "device", mapped, true, "cuMemFree_v2", external_buffer, "",
     Source::external},
    {SAME_NAME("cuMulticastCreate"), "", multicast, false, "cuMemRelease", new_multicast},
    {SAME_NAME("cuGraphAddMemAllocNode"), "device", graph, false, "cuGraphAddMemFreeNode", alloc_node, "",
     Source::graph},
    {SAME_NAME("cudaMalloc"), "device", device, true, "cudaFree", plain, "cuMemAlloc_v2"},
    {SAME_NAME("cudaMallocPitch"), "device", device, true, "cudaFree", pitched, "cuMemAllocPitch_v2"},
    {SAME_NAME("cudaMalloc3D"), "device", device, true, "cudaFree", pitched_volume, "cuMemAllocPitch_v2"},
    {SAME_NAME("cudaMallocManaged"), "managed", managed, true, "cudaFree", with_flags, "cuMemAllocManaged"},
    {SAME_NAME("cudaMallocAsync"), "device", pool, false, "cudaFreeAsync", plain, "cuMemAllocAsync"},
    {SAME_NAME("cudaMallocFromPoolAsync"), "device", pool, false, "cudaFreeAsync", from_pool,
     "cuMemAllocFromPoolAsync"},
    {SAME_NAME("cudaMallocHost"), "pinned", pinned, true, "cudaFreeHost", plain, "cuMemHostAlloc"},
    {SAME_NAME("cudaHostAlloc"), "pinned", pinned, true, "cudaFreeHost", with_flags, "cuMemHostAlloc"},
    {SAME_NAME("cudaHostRegister"), "registered", registered, true, "cudaHostUnregister", in_place,
     "cuMemHostRegister_v2"},
    {SAME_NAME("cudaMallocArray"), "array", array, true, "cudaFreeArray", runtime_array, "cuArray3DCreate_v2"},
    {SAME_NAME("cudaMalloc3DArray"), "array", array, true, "cudaFreeArray", runtime_volume_array, "cuArray3DCreate_v2"},
    {SAME_NAME("cudaMallocMipmappedArray"), "array", array, true, "cudaFreeMipmappedArray", runtime_mipmapped,
     "cuMipmappedArrayCreate"},
    {SAME_NAME("cudaMemPoolCreate"), "", pool_object, false, "cudaMemPoolDestroy", new_pool, "cuMemPoolCreate"},
    {SAME_NAME("cudaMemPoolImportPointer"), "device", imported, false, "cudaFreeAsync", pool_pointer,
     "cuMemPoolImportPointer", Source::pool_pointer},
    {SAME_NAME("cudaIpcOpenMemHandle"), "device", imported, true, "cudaIpcCloseMemHandle", ipc, "cuIpcOpenMemHandle_v2",
     Source::ipc},
    {SAME_NAME("cudaImportExternalMemory"), "", imported, true, "cudaDestroyExternalMemory", external,
     "cuImportExternalMemory"},
    {SAME_NAME("cudaExternalMemoryGetMappedBuffer"), "device", mapped, true, "cudaFree", external_buffer,
     "cuExternalMemoryGetMappedBuffer", Source::external},
    {SAME_NAME("cudaGraphAddMemAllocNode"), "device", graph, false, "cudaGraphAddMemFreeNode", alloc_node,
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
