// SPDX-License-Identifier: Apache-2.0
// Allocations, copies and fills. Each calls the same driver function as the real runtime. For linear copies, the name
// of the driver function states the direction; for other copies, the driver's structure does.
#include "runtime.hpp"

using namespace standin;

STANDIN_ONE(cudaMalloc, (void** out, size_t bytes), cuMemAlloc, out, bytes)
STANDIN_ONE(cudaMallocPitch, (void** out, size_t* pitch, size_t width, size_t height), cuMemAllocPitch, out, pitch,
            width, height, 4)
STANDIN_ONE(cudaMallocManaged, (void** out, size_t bytes, unsigned flags), cuMemAllocManaged, out, bytes, flags)
STANDIN_ONE(cudaMallocHost, (void** out, size_t bytes), cuMemHostAlloc, out, bytes, 0)
STANDIN_ONE(cudaHostAlloc, (void** out, size_t bytes, unsigned flags), cuMemHostAlloc, out, bytes, flags)
STANDIN_ONE(cudaHostRegister, (void* address, size_t bytes, unsigned flags), cuMemHostRegister, address, bytes, flags)
STANDIN_PTSZ(cudaMallocAsync, (void** out, size_t bytes, void* stream), cuMemAllocAsync, out, bytes, stream)
STANDIN_PTSZ(cudaMallocFromPoolAsync, (void** out, size_t bytes, void* pool, void* stream), cuMemAllocFromPoolAsync,
             out, bytes, pool, stream)
STANDIN_ONE(cudaFree, (void* address), cuMemFree, address)
STANDIN_ONE(cudaFreeHost, (void* address), cuMemFreeHost, address)
STANDIN_ONE(cudaHostUnregister, (void* address), cuMemHostUnregister, address)
STANDIN_PTSZ(cudaFreeAsync, (void* address, void* stream), cuMemFreeAsync, address, stream)

namespace {

enum Kind { host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3 };

// The name of the driver function states the direction. The arguments after `kind` are the stream, if any.
#define COPY_BY_KIND(async, ...)                                                                                       \
    [[gnu::always_inline]] inline int copy##async(StreamKind variant, void* to, const void* from, size_t bytes,        \
                                                  int kind, [[maybe_unused]] void* stream = nullptr)                   \
    {                                                                                                                  \
        if (kind == host_to_device)                                                                                    \
            STANDIN_FORWARD(cuMemcpyHtoD##async, variant, to, from, bytes __VA_OPT__(, ) __VA_ARGS__);                 \
        if (kind == device_to_host)                                                                                    \
            STANDIN_FORWARD(cuMemcpyDtoH##async, variant, to, from, bytes __VA_OPT__(, ) __VA_ARGS__);                 \
        if (kind == device_to_device)                                                                                  \
            STANDIN_FORWARD(cuMemcpyDtoD##async, variant, to, from, bytes __VA_OPT__(, ) __VA_ARGS__);                 \
        STANDIN_FORWARD(cuMemcpy##async, variant, to, from, bytes __VA_OPT__(, ) __VA_ARGS__);                         \
    }
COPY_BY_KIND()
COPY_BY_KIND(Async, stream)

MemoryType source_type(int kind)
{
    static constexpr MemoryType types[] = {MemoryType::host, MemoryType::host, MemoryType::device, MemoryType::device};
    return kind < 4 ? types[kind] : MemoryType::unified;
}

MemoryType target_type(int kind)
{
    static constexpr MemoryType types[] = {MemoryType::host, MemoryType::device, MemoryType::host, MemoryType::device};
    return kind < 4 ? types[kind] : MemoryType::unified;
}

// One side of a 2D copy: pitched memory, or an array.
Copy2DSide rows(MemoryType type, const void* address, size_t pitch)
{
    bool host = type == MemoryType::host;
    return {0, 0, type, host ? address : nullptr, host ? nullptr : address, nullptr, pitch};
}

Copy2DSide array(const void* handle, size_t x, size_t y)
{
    return {x, y, MemoryType::array, nullptr, nullptr, handle, 0};
}

Copy3DSide side(const RuntimeCopy3DSide& s, MemoryType type)
{
    type = s.array ? MemoryType::array : type;
    bool host = type == MemoryType::host;
    const auto& p = s.pointer;
    return {
        s.position.width,           s.position.height, s.position.depth, 0,       type,    host ? p.pointer : nullptr,
        host ? nullptr : p.pointer, s.array,           nullptr,          p.pitch, p.height};
}

} // namespace

Copy3D standin::volume(const RuntimeCopy3D& c)
{
    return {side(c.source, source_type(c.kind)), side(c.destination, target_type(c.kind)), c.extent.width,
            c.extent.height, c.extent.depth};
}

namespace {

Copy3D volume(const RuntimePeerCopy3D& c)
{
    return {side(c.source, MemoryType::device), side(c.destination, MemoryType::device), c.extent.width,
            c.extent.height, c.extent.depth};
}

unsigned char byte(int value)
{
    return static_cast<unsigned char>(value);
}

} // namespace

// Each row defines four functions: with and without a stream, and the per-thread variants of both. Each row names two
// driver functions: without and with a stream.
#define UNPACK(...) __VA_ARGS__
#define COPIES(name, parameters, function, async_function, ...)                                                        \
    STANDIN_PTDS(name, (UNPACK parameters), function, __VA_ARGS__)                                                     \
    STANDIN_PTSZ(name##Async, (UNPACK parameters, void* stream), async_function, __VA_ARGS__, stream)
#define VARIANT(name, inner, variant, to, from, parameters, ...)                                                       \
    RUNTIME(name) parameters                                                                                           \
    {                                                                                                                  \
        return inner(variant, to, from, bytes, kind __VA_OPT__(, ) __VA_ARGS__);                                       \
    }
#define LINEAR(name, parameters, to, from)                                                                             \
    VARIANT(name, copy, legacy, to, from, parameters)                                                                  \
    VARIANT(name##_ptds, copy, per_thread, to, from, parameters)                                                       \
    VARIANT(name##Async, copyAsync, legacy, to, from, (UNPACK parameters, void* stream), stream)                       \
    VARIANT(name##Async_ptsz, copyAsync, per_thread, to, from, (UNPACK parameters, void* stream), stream)

LINEAR(cudaMemcpy, (void* to, const void* from, size_t bytes, int kind), to, from)
LINEAR(cudaMemcpyToSymbol, (const void* symbol, const void* from, size_t bytes, size_t offset, int kind),
       variable(symbol, offset), from)
LINEAR(cudaMemcpyFromSymbol, (void* to, const void* symbol, size_t bytes, size_t offset, int kind), to,
       variable(symbol, offset))

// These two have no per-thread variants.
STANDIN_SAME(MemcpyPeer, (void* to, int, const void* from, int, size_t bytes), to, nullptr, from, nullptr, bytes)
STANDIN_SAME(MemcpyPeerAsync, (void* to, int, const void* from, int, size_t bytes, void* stream), to, nullptr, from,
             nullptr, bytes, stream)

COPIES(cudaMemcpy2D,
       (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind),
       cuMemcpy2DUnaligned, cuMemcpy2DAsync,
       at(Copy2D{rows(source_type(kind), from, from_pitch), rows(target_type(kind), to, to_pitch), width, height}))
COPIES(cudaMemcpy2DToArray,
       (void* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, int kind),
       cuMemcpy2DUnaligned, cuMemcpy2DAsync,
       at(Copy2D{rows(source_type(kind), from, pitch), array(to, x, y), width, height}))
COPIES(cudaMemcpy2DFromArray,
       (void* to, size_t pitch, const void* from, size_t x, size_t y, size_t width, size_t height, int kind),
       cuMemcpy2DUnaligned, cuMemcpy2DAsync,
       at(Copy2D{array(from, x, y), rows(target_type(kind), to, pitch), width, height}))
STANDIN_PTDS(cudaMemcpy2DArrayToArray,
             (void* to, size_t to_x, size_t to_y, const void* from, size_t from_x, size_t from_y, size_t width,
              size_t height, int),
             cuMemcpy2DUnaligned, at(Copy2D{array(from, from_x, from_y), array(to, to_x, to_y), width, height}))
COPIES(cudaMemcpyToArray, (void* to, size_t x, size_t y, const void* from, size_t bytes, int kind), cuMemcpy2DUnaligned,
       cuMemcpy2DAsync, at(Copy2D{rows(source_type(kind), from, bytes), array(to, x, y), bytes, 1}))
COPIES(cudaMemcpyFromArray, (void* to, const void* from, size_t x, size_t y, size_t bytes, int kind),
       cuMemcpy2DUnaligned, cuMemcpy2DAsync,
       at(Copy2D{array(from, x, y), rows(target_type(kind), to, bytes), bytes, 1}))
STANDIN_PTDS(cudaMemcpyArrayToArray,
             (void* to, size_t to_x, size_t to_y, const void* from, size_t from_x, size_t from_y, size_t bytes, int),
             cuMemcpy2DUnaligned, at(Copy2D{array(from, from_x, from_y), array(to, to_x, to_y), bytes, 1}))
COPIES(cudaMemcpy3D, (const RuntimeCopy3D* copy), cuMemcpy3D, cuMemcpy3DAsync, at(volume(*copy)))
COPIES(cudaMemcpy3DPeer, (const RuntimePeerCopy3D* copy), cuMemcpy3DPeer, cuMemcpy3DPeerAsync, at(volume(*copy)))

COPIES(cudaMemset, (void* to, int value, size_t bytes), cuMemsetD8, cuMemsetD8Async, to, byte(value), bytes)
COPIES(cudaMemset2D, (void* to, size_t pitch, int value, size_t width, size_t height), cuMemsetD2D8, cuMemsetD2D8Async,
       to, pitch, byte(value), width, height)
// Slices are contiguous, so the fill treats them as one plane of width x (height x depth).
COPIES(cudaMemset3D, (PitchedPointer to, int value, Extent extent), cuMemsetD2D8, cuMemsetD2D8Async, to.pointer,
       to.pitch, byte(value), extent.width, extent.height* extent.depth)

#if CUDART < 13
STANDIN_SAME_PTSZ(MemcpyBatchAsync,
                  (void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* first,
                   size_t attribute_count, size_t* failed, void* stream),
                  to, from, sizes, count, attributes, first, attribute_count, failed, stream)
STANDIN_SAME_PTSZ(Memcpy3DBatchAsync, (size_t count, void* list, size_t* failed, uint64_t flags, void* stream), count,
                  list, failed, flags, stream)
STANDIN_SAME_PTSZ(MemPrefetchAsync, (const void* address, size_t bytes, int device, void* stream), address, bytes,
                  device, stream)
#else
STANDIN_SAME_PTSZ(MemcpyBatchAsync,
                  (void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* first,
                   size_t attribute_count, void* stream),
                  to, from, sizes, count, attributes, first, attribute_count, stream)
STANDIN_SAME_PTSZ(Memcpy3DBatchAsync, (size_t count, void* list, uint64_t flags, void* stream), count, list, flags,
                  stream)
STANDIN_SAME_PTSZ(MemPrefetchAsync,
                  (const void* address, size_t bytes, Location location, unsigned flags, void* stream), address, bytes,
                  location, flags, stream)
STANDIN_SAME_PTSZ(MemPrefetchBatchAsync,
                  (void** addresses, size_t* sizes, size_t count, Location* locations, size_t* first,
                   size_t location_count, uint64_t flags, void* stream),
                  addresses, sizes, count, locations, first, location_count, flags, stream)
#endif
