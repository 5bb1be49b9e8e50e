// SPDX-License-Identifier: Apache-2.0
// Structures that describe copies and allocations. Functions take large ones by pointer, small ones by value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

// Address bits that the processor ignores, so that programs can store tags in them.
#if defined(__aarch64__)
constexpr uintptr_t ignored_bits = uintptr_t{0xff} << 56;
#else
constexpr uintptr_t ignored_bits = 0;
#endif

enum class MemoryType : unsigned { none = 0, host = 1, device = 2, array = 3, unified = 4 }; // CUmemorytype

struct Copy2DSide {
    size_t x, y;
    MemoryType type;
    const void* host;
    const void* device;
    const void* array;
    size_t pitch;
};
struct Copy2D { // CUDA_MEMCPY2D
    Copy2DSide source, destination;
    size_t width, height;
};
static_assert(sizeof(Copy2D) == 128 && offsetof(Copy2D, source.type) == 16 &&
              offsetof(Copy2D, destination.type) == 72 && offsetof(Copy2D, destination.host) == 80 &&
              offsetof(Copy2D, width) == 112);

struct Copy3DSide {
    size_t x, y, z, level;
    MemoryType type;
    const void* host;
    const void* device;
    const void* array;
    void* context; // only in the structures of peer copies
    size_t pitch, height;
};
struct Copy3D { // CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER
    Copy3DSide source, destination;
    size_t width, height, depth;
};
static_assert(sizeof(Copy3D) == 200 && offsetof(Copy3D, source.type) == 32 && offsetof(Copy3D, source.context) == 64 &&
              offsetof(Copy3D, destination.type) == 120 && offsetof(Copy3D, width) == 176);

struct Extent { // cudaExtent, cudaPos
    size_t width, height, depth;
};

struct PitchedPointer { // cudaPitchedPtr
    void* pointer;
    size_t pitch, width, height;
};

struct RuntimeCopy3DSide {
    const void* array;
    Extent position;
    PitchedPointer pointer;
};
struct RuntimeCopy3D { // cudaMemcpy3DParms
    RuntimeCopy3DSide source, destination;
    Extent extent;
    int kind;
};
static_assert(sizeof(RuntimeCopy3D) == 160 && offsetof(RuntimeCopy3D, source.pointer) == 32 &&
              offsetof(RuntimeCopy3D, destination.pointer) == 96 && offsetof(RuntimeCopy3D, kind) == 152);

struct RuntimePeerCopy3D { // cudaMemcpy3DPeerParms
    RuntimeCopy3DSide source;
    int source_device;
    RuntimeCopy3DSide destination;
    int destination_device;
    Extent extent;
};
static_assert(sizeof(RuntimePeerCopy3D) == 168 && offsetof(RuntimePeerCopy3D, source_device) == 64 &&
              offsetof(RuntimePeerCopy3D, destination_device) == 136);

struct Location { // CUmemLocation
    enum { device = 1, host = 2 };
    int type, id;
};

struct BatchOperand { // for an array, `pointer` holds its handle
    enum : unsigned { is_pointer = 1, is_array = 2 };
    unsigned type;
    const void* pointer;
    size_t row, layer;
    Location location;
};
struct BatchCopy3D { // CUDA_MEMCPY3D_BATCH_OP
    BatchOperand source, destination;
    Extent extent;
    unsigned order, flags;
};
static_assert(sizeof(BatchCopy3D) == 112 && offsetof(BatchCopy3D, destination) == 40 &&
              offsetof(BatchCopy3D, extent) == 80);

struct CopyAttributes { // CUmemcpyAttributes
    unsigned order;
    Location source, destination;
    unsigned flags;
};
static_assert(sizeof(CopyAttributes) == 24);

struct AllocationProperties { // CUmemAllocationProp
    unsigned type, handle_types;
    Location location;
    void* security;
    uint64_t flags;
};
static_assert(sizeof(AllocationProperties) == 32 && offsetof(AllocationProperties, location) == 8);

struct ArrayDescriptor { // CUDA_ARRAY_DESCRIPTOR
    size_t width, height;
    unsigned format, channels;
};
static_assert(sizeof(ArrayDescriptor) == 24);

} // namespace standin
