// SPDX-License-Identifier: Apache-2.0
// Table of functions that allocate and free. To add a function, add a row.
#include "alloc.hpp"

#include "graph.hpp"
#include "kernels.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

using namespace standin;

ChannelFormat channels(const Array3DDescriptor& d)
{
    int bits = static_cast<int>(8 * standin::bytes_of_format(d.format));
    auto kind = d.format >= 0x10 ? ChannelFormat::is_float
                : d.format >= 8  ? ChannelFormat::is_signed
                                 : ChannelFormat::is_unsigned;
    auto bits_of = [&](unsigned channel) { return channel < d.channels ? bits : 0; };
    return {bits_of(0), bits_of(1), bits_of(2), bits_of(3), kind};
}

// Returns the address of a temporary, which is valid until the end of the full expression.
template<class T>
T* at(T&& value)
{
    return &value;
}

#define BY(name, ...)                                                                                                  \
    int name(void* f, AllocRequest& w)                                                                                 \
    {                                                                                                                  \
        return call_symbol(f, __VA_ARGS__);                                                                            \
    }
BY(plain, &w.address, w.bytes, w.stream) // functions without Async ignore the stream
BY(with_flags, &w.address, w.bytes, 1u)
BY(from_pool, &w.address, w.bytes, w.pool, w.stream)
BY(in_place, w.address, w.bytes, 0u)
BY(physical, &w.address, w.bytes, w.unreadable ? w.unreadable : at(AllocationProperties{1, 0, w.location, nullptr, 0}),
   0ull)
BY(flat_array, &w.address, at(ArrayDescriptor{w.array.width, w.array.height, w.array.format, w.array.channels}))
BY(volume_array, &w.address, &w.array, w.levels) // functions without levels ignore them
BY(runtime_array, &w.address, at(channels(w.array)), w.array.width, w.array.height, 0u)
BY(runtime_volume_array, &w.address, at(channels(w.array)), Extent{w.array.width, w.array.height, w.array.depth}, 0u)
BY(runtime_mipmapped, &w.address, at(channels(w.array)), Extent{w.array.width, w.array.height, w.array.depth}, w.levels,
   0u)
BY(new_pool, &w.address, at(PoolProperties{1, 0, w.location, nullptr, 0, {}}))
BY(ipc, &w.address, w.shared, 1u)
BY(pool_pointer, &w.address, w.pool, &w.shared)
BY(shareable, &w.address, reinterpret_cast<void*>(static_cast<intptr_t>(w.file)), 1) // 1: a file descriptor
BY(external, &w.address, at(ExternalMemory{1, {}, w.bytes, 0, {}}))
BY(external_buffer, &w.address, w.source.address, at(ExternalBuffer{w.source.offset, w.bytes, 0, {}}))
BY(new_multicast, &w.address, at(MulticastProperties{2, w.bytes, 1, 0}))

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

int alloc_node(void* f, AllocRequest& w)
{
    AllocationNode node = {};
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
const AllocRow rows[] = {
    {"cuMemAlloc_v2", "device", device, true, "cuMemFree_v2", plain},
    {"cuMemAllocPitch_v2", "device", device, true, "cuMemFree_v2", pitched},
    {"cuMemAllocManaged", "managed", managed, true, "cuMemFree_v2", with_flags},
    {"cuMemAllocAsync", "device", pool, false, "cuMemFreeAsync", plain},
    {"cuMemAllocFromPoolAsync", "device", pool, false, "cuMemFreeAsync", from_pool},
    {"cuMemHostAlloc", "pinned", pinned, true, "cuMemFreeHost", with_flags},
    {"cuMemAllocHost_v2", "pinned", pinned, true, "cuMemFreeHost", plain},
    {"cuMemHostRegister_v2", "registered", registered, true, "cuMemHostUnregister", in_place},
    {"cuMemMap", "vmm", vmm, false, "cuMemRelease", physical, "", Source::none, "cuMemCreate"},
    {"cuMemCreate", "vmm", vmm, false, "cuMemRelease", physical},
    {"array", "array", array, true, "cuArrayDestroy", flat_array, "", Source::none, "cuArrayCreate_v2"},
    {"cuArrayCreate_v2", "array", array, true, "cuArrayDestroy", flat_array},
    {"cuArray3DCreate_v2", "array", array, true, "cuArrayDestroy", volume_array},
    {"cuMipmappedArrayCreate", "array", array, true, "cuMipmappedArrayDestroy", volume_array},
    {"cuMemPoolCreate", "", pool_object, false, "cuMemPoolDestroy", new_pool},
    {"cuMemPoolImportPointer", "device", imported, false, "cuMemFreeAsync", pool_pointer, "", Source::pool_pointer},
    {"cuIpcOpenMemHandle", "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {"cuIpcOpenMemHandle_v2", "device", imported, true, "cuIpcCloseMemHandle", ipc, "", Source::ipc},
    {"cuMemImportFromShareableHandle", "vmm", imported, false, "cuMemRelease", shareable, "", Source::file},
    {"cuImportExternalMemory", "", imported, true, "cuDestroyExternalMemory", external},
    {"cuExternalMemoryGetMappedBuffer", "device", mapped, true, "cuMemFree_v2", external_buffer, "", Source::external},
    {"cuMulticastCreate", "", multicast, false, "cuMemRelease", new_multicast},
    {"cuGraphAddMemAllocNode", "device", graph, false, "cuGraphAddMemFreeNode", alloc_node, "", Source::graph},
    {"cudaMalloc", "device", device, true, "cudaFree", plain, "cuMemAlloc_v2"},
    {"cudaMallocPitch", "device", device, true, "cudaFree", pitched, "cuMemAllocPitch_v2"},
    {"cudaMalloc3D", "device", device, true, "cudaFree", pitched_volume, "cuMemAllocPitch_v2"},
    {"cudaMallocManaged", "managed", managed, true, "cudaFree", with_flags, "cuMemAllocManaged"},
    {"cudaMallocAsync", "device", pool, false, "cudaFreeAsync", plain, "cuMemAllocAsync"},
    {"cudaMallocFromPoolAsync", "device", pool, false, "cudaFreeAsync", from_pool, "cuMemAllocFromPoolAsync"},
    {"cudaMallocHost", "pinned", pinned, true, "cudaFreeHost", plain, "cuMemHostAlloc"},
    {"cudaHostAlloc", "pinned", pinned, true, "cudaFreeHost", with_flags, "cuMemHostAlloc"},
    {"cudaHostRegister", "registered", registered, true, "cudaHostUnregister", in_place, "cuMemHostRegister_v2"},
    {"cudaMallocArray", "array", array, true, "cudaFreeArray", runtime_array, "cuArray3DCreate_v2"},
    {"cudaMalloc3DArray", "array", array, true, "cudaFreeArray", runtime_volume_array, "cuArray3DCreate_v2"},
    {"cudaMallocMipmappedArray", "array", array, true, "cudaFreeMipmappedArray", runtime_mipmapped,
     "cuMipmappedArrayCreate"},
    {"cudaMemPoolCreate", "", pool_object, false, "cudaMemPoolDestroy", new_pool, "cuMemPoolCreate"},
    {"cudaMemPoolImportPointer", "device", imported, false, "cudaFreeAsync", pool_pointer, "cuMemPoolImportPointer",
     Source::pool_pointer},
    {"cudaIpcOpenMemHandle", "device", imported, true, "cudaIpcCloseMemHandle", ipc, "cuIpcOpenMemHandle_v2",
     Source::ipc},
    {"cudaImportExternalMemory", "", imported, true, "cudaDestroyExternalMemory", external, "cuImportExternalMemory"},
    {"cudaExternalMemoryGetMappedBuffer", "device", mapped, true, "cudaFree", external_buffer,
     "cuExternalMemoryGetMappedBuffer", Source::external},
    {"cudaGraphAddMemAllocNode", "device", graph, false, "cudaGraphAddMemFreeNode", alloc_node,
     "cuGraphAddMemAllocNode", Source::graph},
};

const FreeRow free_rows[] = {{"cuMemFree_v2"},
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
                             {"cudaGraphAddMemFreeNode", "cuGraphAddMemFreeNode", free_node}};

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
