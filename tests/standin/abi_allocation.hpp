// SPDX-License-Identifier: Apache-2.0
// Structures passed to functions that allocate, share and map memory, and kinds of held memory.
#pragma once

#include "abi_memory.hpp"

#include <algorithm>
#include <iterator>

namespace standin {

// Kinds of held memory; also indexes of the arrays that standin_holdings() fills. The first four kinds are the device's
// own memory.
enum class Holding {
    device,
    array,
    pool,
    vmm,
    managed,
    pinned,
    registered,
    imported,
    reserved,
    mapped,
    graph,
    pool_object,
    multicast,
    count_
};
inline constexpr const char* holding_names[] = {"device", "array",       "pool",     "vmm",      "managed",
                                                "pinned", "registered",  "imported", "reserved", "mapped",
                                                "graph",  "pool-object", "multicast"};
static_assert(std::size(holding_names) == static_cast<size_t>(Holding::count_));

struct HoldingTally {
    uint64_t bytes, count;
};
struct Freed { // physical memory freed by a call
    Holding holding;
    uint64_t bytes;
};

struct Array3DDescriptor { // CUDA_ARRAY3D_DESCRIPTOR
    size_t width, height, depth;
    unsigned format, channels, flags;
};
static_assert(sizeof(Array3DDescriptor) == 40 && offsetof(Array3DDescriptor, format) == 24);

struct ChannelFormat { // cudaChannelFormatDesc
    enum Kind { is_signed, is_unsigned, is_float };
    int x, y, z, w, kind;
};

// Bytes per channel of a CUarray_format.
inline size_t bytes_of_format(unsigned format)
{
    switch (format) {
    case 0x01: // unsigned
    case 0x08: // signed
        return 1;
    case 0x02:
    case 0x09:
    case 0x10: // half
        return 2;
    case 0x03:
    case 0x0a:
    case 0x20: // float
        return 4;
    }
    return 0;
}

inline size_t bytes_of(const Array3DDescriptor& d)
{
    auto at_least_1 = [](size_t n) { return n ? n : 1; };
    return d.width * at_least_1(d.height) * at_least_1(d.depth) * bytes_of_format(d.format) * d.channels;
}

// Total size of all mipmap levels. Each level halves every nonzero dimension of the previous one.
inline size_t bytes_of(Array3DDescriptor d, unsigned levels)
{
    size_t bytes = 0;
    auto halve = [](size_t& n) { n = n ? std::max<size_t>(n / 2, 1) : 0; };
    for (unsigned i = 0; i < levels; i++) {
        bytes += bytes_of(d);
        halve(d.width), halve(d.height), halve(d.depth);
    }
    return bytes;
}

struct PoolProperties { // CUmemPoolProps
    unsigned type, handle_types;
    Location location;
    void* security;
    size_t max_size;
    unsigned char reserved[56];
};
static_assert(sizeof(PoolProperties) == 88 && offsetof(PoolProperties, location) == 8 &&
              offsetof(PoolProperties, max_size) == 24);

// Stand-in for CUipcMemHandle and CUmemPoolPtrExportData, which are opaque. Contains the size of the memory, which is
// all that another process needs to open it.
struct Shared {
    static constexpr uint64_t magic_value = 0x6e69646e617473;
    uint64_t magic = magic_value;
    uint64_t bytes = 0;
    uint64_t reserved[6] = {};
};
static_assert(sizeof(Shared) == 64);

struct ExternalMemory { // CUDA_EXTERNAL_MEMORY_HANDLE_DESC; the CUDA 12 runtime's structure ends after `flags`
    unsigned type;
    uint64_t handle[2];
    uint64_t bytes;
    unsigned flags;
    unsigned reserved[16];
};
static_assert(sizeof(ExternalMemory) == 104 && offsetof(ExternalMemory, bytes) == 24);

struct ExternalBuffer { // CUDA_EXTERNAL_MEMORY_BUFFER_DESC; the CUDA 12 runtime's structure ends after `flags`
    uint64_t offset, bytes;
    unsigned flags;
    unsigned reserved[16];
};
static_assert(sizeof(ExternalBuffer) == 88);

struct AllocationNode { // CUDA_MEM_ALLOC_NODE_PARAMS
    PoolProperties pool;
    const void* access;
    size_t access_count;
    size_t bytes;
    uintptr_t address; // out
};
static_assert(sizeof(AllocationNode) == 120 && offsetof(AllocationNode, bytes) == 104 &&
              offsetof(AllocationNode, address) == 112);

struct MulticastProperties { // CUmulticastObjectProp
    unsigned devices;
    size_t bytes;
    uint64_t handle_types, flags;
};
static_assert(sizeof(MulticastProperties) == 32 && offsetof(MulticastProperties, bytes) == 8);

} // namespace standin
