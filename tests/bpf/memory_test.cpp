// SPDX-License-Identifier: Apache-2.0
// Allocations and frees: what the kernel side counts for each function, which memory is live, and who holds it.
#include "base/clock.hpp"
#include "bpf/shared/holding.h"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/bpf/written_calls.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

uint64_t address_of(const uint64_t* words)
{
    return reinterpret_cast<uint64_t>(words);
}

struct Pair {
    std::string_view kind, allocate, release;
};

// Functions that allocate each kind of memory, and those that free it.
constexpr Pair pairs[] = {
    {"device",
     "cuMemAlloc_v2 cuMemAllocPitch_v2 cudaMalloc cudaMallocPitch cudaMalloc3D hipMalloc hipExtMallocWithFlags "
     "hipMallocPitch hipMalloc3D",
     "cuMemFree_v2 cudaFree hipFree"},
    {"pool",
     "cuMemAllocAsync cuMemAllocFromPoolAsync cudaMallocAsync cudaMallocFromPoolAsync hipMallocAsync "
     "hipMallocFromPoolAsync",
     "cuMemFreeAsync cudaFreeAsync hipFreeAsync"},
    {"managed", "cuMemAllocManaged cudaMallocManaged hipMallocManaged", "cuMemFree_v2 cudaFree hipFree"},
    {"pinned", "cuMemHostAlloc cuMemAllocHost_v2 cudaHostAlloc cudaMallocHost hipHostMalloc hipHostAlloc hipMallocHost",
     "cuMemFreeHost cudaFreeHost hipHostFree hipFreeHost"},
    {"registered", "cuMemHostRegister cuMemHostRegister_v2 cudaHostRegister hipHostRegister",
     "cuMemHostUnregister cudaHostUnregister hipHostUnregister"},
    {"array",
     "cuArrayCreate_v2 cuArray3DCreate_v2 cuMipmappedArrayCreate cuExternalMemoryGetMappedMipmappedArray "
     "cudaMallocArray cudaMalloc3DArray cudaMallocMipmappedArray cudaExternalMemoryGetMappedMipmappedArray "
     "hipArrayCreate hipArray3DCreate hipMipmappedArrayCreate hipMallocArray hipMalloc3DArray hipMallocMipmappedArray",
     "cuArrayDestroy cuMipmappedArrayDestroy cudaFreeArray cudaFreeMipmappedArray hipArrayDestroy "
     "hipMipmappedArrayDestroy hipFreeArray hipFreeMipmappedArray"},
    {"vmm", "cuMemCreate hipMemCreate", "cuMemRelease hipMemRelease"},
    {"imported", "cuMemImportFromShareableHandle hipMemImportFromShareableHandle", "cuMemRelease hipMemRelease"},
    {"multicast", "cuMulticastCreate", "cuMemRelease"},
    {"mapped", "cuMemMap hipMemMap", "cuMemUnmap hipMemUnmap"},
    {"mapped", "cuExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedBuffer hipExternalMemoryGetMappedBuffer",
     "cuMemFree_v2 cudaFree hipFree"},
    {"reserved", "cuMemAddressReserve hipMemAddressReserve", "cuMemAddressFree hipMemAddressFree"},
    {"imported",
     "cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cudaIpcOpenMemHandle hipIpcOpenMemHandle cuMemPoolImportPointer "
     "cudaMemPoolImportPointer hipMemPoolImportPointer",
     "cuIpcCloseMemHandle cudaIpcCloseMemHandle hipIpcCloseMemHandle"},
    {"external", "cuImportExternalMemory cudaImportExternalMemory hipImportExternalMemory",
     "cuDestroyExternalMemory cudaDestroyExternalMemory hipDestroyExternalMemory"},
    {"pool-object",
     "cuMemPoolCreate cuMemPoolImportFromShareableHandle cudaMemPoolCreate cudaMemPoolImportFromShareableHandle "
     "hipMemPoolCreate hipMemPoolImportFromShareableHandle",
     "cuMemPoolDestroy cudaMemPoolDestroy hipMemPoolDestroy"},
    {"graph", "cuGraphAddMemAllocNode cudaGraphAddMemAllocNode hipGraphAddMemAllocNode",
     "cuGraphAddMemFreeNode cudaGraphAddMemFreeNode hipGraphAddMemFreeNode hipDrvGraphAddMemFreeNode"},
};

// Calls of a program, one per line: a function, its arguments and its result (=N), and after each ">" an effect. An
// effect is a line that -e shows: operation, kind of memory, bytes, @address or handle, =result, "captured". "gone" is
// memory that was released without a free, and "approximate" a process whose live memory is no longer known exactly.
// Results that the call stores (out, pitch), addresses and handles are hexadecimal.
constexpr std::string_view program = R"(
# an allocation
cuMemAlloc_v2 out=a000 bytes=1009 > alloc device 1009 @a000
# failed allocations
cuMemAlloc_v2 out=b000 bytes=4096 =2 > alloc device 4096 @0 =2
cuMemAlloc_v2 out=b000 bytes=77 =1 > alloc device 77 @0 =1
cuMemHostAlloc out=b000 bytes=5000 =2 > alloc pinned 5000 @0 =2
cuMemCreate out=1 bytes=512 location=1 device=0 =2 > alloc vmm 512 @0 =2
# failed frees
cuMemFree_v2 address=a000 =1 > free device 1009 @a000 =1
cuMemFree_v2 address=a000 =400 > free device 1009 @a000 =400
# a free
cuMemFree_v2 address=a000 > free device 1009 @a000
# frees of memory that is not allocated
cuMemFree_v2 address=a000 > free unknown - @a000
cuMemFree_v2 address=b000 > free unknown - @b000
cuMemFreeHost address=1234 > free unknown - @1234
cuMemFree_v2 address=1234 =1 > free unknown - @1234 =1
cuMemRelease handle=77 > free unknown - @77
cuMemUnmap address=55000 bytes=512 > free unknown - @55000
# frees of null, and an allocation of 0 bytes
cuMemFree_v2 address=0
cuMemFreeHost address=0
cuMemAlloc_v2 out=0 bytes=0
# an address is allocated again, after a free that was not seen
cuMemAlloc_v2 out=a000 bytes=4096 > alloc device 4096 @a000
cuMemAlloc_v2 out=a000 bytes=100 > gone device 4096 @a000 > alloc device 100 @a000
cuMemFree_v2 address=a000 > free device 100 @a000
# a free on another stream, after one that failed
cuMemAllocAsync out=a000 bytes=2003 stream=1 > alloc pool 2003 @a000
cuMemFreeAsync address=a000 stream=2 =1 > free pool 2003 @a000 =1
cuMemFreeAsync address=a000 stream=2 > free pool 2003 @a000
# a free by another thread
cuMemAlloc_v2 out=a000 bytes=777 > alloc device 777 @a000
thread cuMemFree_v2 address=a000 > free device 777 @a000
# trims
cuMemPoolTrimTo handle=5 > trim pool-object - @0
cuDeviceGraphMemTrim device=0 =1 > trim graph - @0 =1
# memory with a pitch; its size may be unknown
cuMemAllocPitch_v2 out=a000 pitch=200 bytes=100 height=3 > alloc device 1536 @a000
cuMemFree_v2 address=a000 > free device 1536 @a000
cuMemAllocPitch_v2 out=a000 pitch=200 bytes=1152921504606846976 height=32 > alloc device - @a000
cuMemFree_v2 address=a000 > free device - @a000
cuMemAllocPitch_v2 out=a000 pitch=200 bytes=100 height=4294967296 > alloc device - @a000
cuMemFree_v2 address=a000 > free device - @a000
cuMemAllocPitch_v2 out=a000 pitch=10000000000 bytes=100 height=2147483648 > alloc device - @a000
cuMemFree_v2 address=a000 > free device - @a000
# arrays of each format: 8, 16 and 32 bits, half, float; with planes, blocks or an unknown format
cuArrayCreate_v2 out=a1 bytes=10 height=3 format=1 channels=4 > alloc array 120 @a1
cuArrayCreate_v2 out=a2 bytes=10 height=0 format=2 channels=1 > alloc array 20 @a2
cuArrayCreate_v2 out=a3 bytes=10 height=3 format=3 channels=2 > alloc array 240 @a3
cuArrayCreate_v2 out=a4 bytes=10 height=3 format=8 channels=1 > alloc array 30 @a4
cuArrayCreate_v2 out=a5 bytes=10 height=3 format=9 channels=2 > alloc array 120 @a5
cuArrayCreate_v2 out=a6 bytes=10 height=3 format=10 channels=4 > alloc array 480 @a6
cuArrayCreate_v2 out=a7 bytes=10 height=3 format=16 channels=1 > alloc array 60 @a7
cuArrayCreate_v2 out=a8 bytes=10 height=3 format=32 channels=4 > alloc array 480 @a8
cuArrayCreate_v2 out=a9 bytes=10 height=6 format=176 channels=3 > alloc array - @a9
cuArrayCreate_v2 out=aa bytes=16 height=16 format=145 channels=4 > alloc array - @aa
cuArrayCreate_v2 out=ab bytes=16 height=16 format=63 channels=4 > alloc array - @ab
# arrays with a depth, with levels, and with more bytes than fit into a number
cuArray3DCreate_v2 out=b1 bytes=10 height=6 depth=3 format=32 channels=4 > alloc array 2880 @b1
cuArray3DCreate_v2 out=b2 bytes=4611686018427387904 height=2 depth=0 format=32 channels=4 > alloc array - @b2
cuArray3DCreate_v2 out=b3 bytes=4294967296 height=0 depth=2147483648 format=32 channels=4 > alloc array - @b3
cuMipmappedArrayCreate out=b4 bytes=64 height=32 depth=0 format=16 channels=2 levels=7 > alloc array 10924 @b4
cuMipmappedArrayCreate out=b5 bytes=2 height=1 depth=0 format=1 channels=1 levels=1000 > alloc array 33 @b5

# physical memory exists until it has neither a handle nor a mapping: the handle is released first
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemRelease handle=1
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000 > free vmm 512 @10000
# the handle is released last
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000
cuMemRelease handle=1 > free vmm 512 @1
# physical memory without a mapping
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemRelease handle=1 > free vmm 512 @1
cuMemRelease handle=1 > free unknown - @1
# two mappings of the same memory
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemMap address=20000 bytes=512 handle=1 > alloc mapped 512 @20000
cuMemRelease handle=1
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000
cuMemUnmap address=20000 bytes=512 > free mapped 512 @20000 > free vmm 512 @20000
# a call that removes several mappings
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemCreate out=2 bytes=1024 location=1 device=0 > alloc vmm 1024 @2
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemMap address=10200 bytes=1024 handle=2 > alloc mapped 1024 @10200
cuMemMap address=10600 bytes=512 handle=1 > alloc mapped 512 @10600
cuMemRelease handle=1
cuMemRelease handle=2
cuMemUnmap address=10000 bytes=1536 =1 > free mapped - @10000 =1
cuMemUnmap address=10000 bytes=1536 > free mapped 512 @10000 > free mapped 1024 @10200 > free vmm 1024 @10200
cuMemUnmap address=10600 bytes=512 > free mapped 512 @10600 > free vmm 512 @10600
# another thread maps an address before the call that has removed its old mapping returns
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
enter cuMemUnmap address=10000 bytes=512
thread cuMemMap address=10000 bytes=512 handle=1 > gone mapped 512 @10000 > alloc mapped 512 @10000
leave
enter cuMemUnmap address=10000 bytes=512
thread cuMemMap address=10000 bytes=512 handle=99 > gone mapped 512 @10000 > alloc mapped 512 @10000
leave
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000
cuMemRelease handle=1 > free vmm 512 @1
# a range that is not mapped completely
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemUnmap address=10000 bytes=1024 > free mapped 512 @10000 > free unknown - @10200
cuMemRelease handle=1 > free vmm 512 @1
# a second reference to a handle
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemRetainAllocationHandle out=1 =1
cuMemRetainAllocationHandle out=1
cuMemRelease handle=1
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000
cuMemRelease handle=1 > free vmm 512 @1
# releases and mappings that fail
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemRelease handle=1 =1 > free vmm 512 @1 =1
cuMemMap address=10000 bytes=512 handle=1 =1 > alloc mapped 512 @10000 =1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemRelease handle=1 =1 > free vmm 512 @1 =1
cuMemRelease handle=1
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000 > free vmm 512 @10000
# a handle is reused while its old memory is mapped
cuMemCreate out=1 bytes=512 location=1 device=0 > alloc vmm 512 @1
cuMemMap address=10000 bytes=512 handle=1 > alloc mapped 512 @10000
cuMemRelease handle=1
cuMemCreate out=1 bytes=1024 location=1 device=0 > alloc vmm 1024 @1
cuMemMap address=20000 bytes=1024 handle=1 > alloc mapped 1024 @20000
cuMemUnmap address=10000 bytes=512 > free mapped 512 @10000 > free vmm 512 @10000
cuMemRelease handle=1
cuMemUnmap address=20000 bytes=1024 > free mapped 1024 @20000 > free vmm 1024 @20000
# physical memory of the host, and of unknown locations
cuMemCreate out=1 bytes=512 location=2 device=0 > alloc pinned 512 @1
cuMemRelease handle=1 > free pinned 512 @1
cuMemCreate out=1 bytes=512 location=3 device=0 > alloc pinned 512 @1
cuMemRelease handle=1 > free pinned 512 @1
cuMemCreate out=1 bytes=512 location=4 device=0 > alloc pinned 512 @1
cuMemRelease handle=1 > free pinned 512 @1
cuMemCreate out=1 bytes=512 location=0 device=0 > alloc vmm 512 @1
cuMemRelease handle=1 > free vmm 512 @1
cuMemCreate out=1 bytes=512 location=5 device=0 > alloc vmm 512 @1
cuMemRelease handle=1 > free vmm 512 @1

# captured calls are recorded, not executed
cuStreamBeginCapture_v2 stream=1
cuMemAllocAsync out=a000 bytes=4096 stream=1 > alloc graph 4096 @a000 captured
cuMemAllocAsync_ptsz out=b000 bytes=9000 stream=1 > alloc graph 9000 @b000 captured
cuMemAllocAsync out=c000 bytes=10 stream=7 > alloc pool 10 @c000
cuMemFreeAsync address=a000 stream=1 > free graph 4096 @a000 captured
cuStreamEndCapture stream=1 out=0
cuMemAllocAsync out=d000 bytes=800 stream=1 > alloc pool 800 @d000
cuMemFreeAsync address=c000 stream=1 > free pool 10 @c000
cuMemFreeAsync address=d000 stream=2 > free pool 800 @d000
# memory of a graph, which each launch of the graph allocates again
cuMemFreeAsync address=b000 stream=0 > free graph 9000 @b000
cuGraphAddMemFreeNode address=b000 > free graph 9000 @b000 captured
# captures of a thread's own stream
cuStreamBeginCapture_v2 stream=2
cuMemAllocAsync_ptsz out=a000 bytes=1 stream=0 > alloc graph 1 @a000 captured
thread cuMemAllocAsync_ptsz out=b000 bytes=2 stream=0 > alloc pool 2 @b000
cuStreamEndCapture_ptsz stream=0 out=0
cuGraphAddMemFreeNode address=a000 > free graph 1 @a000 captured
cuMemFree_v2 address=b000 > free pool 2 @b000
# captures of streams that are destroyed
cuStreamBeginCapture_v2 stream=5
cuStreamDestroy_v2 stream=5
cuMemAllocAsync out=a000 bytes=3 stream=5 > alloc pool 3 @a000
cuMemFree_v2 address=a000 > free pool 3 @a000

# each kind of memory, outside of a known context. Handles may equal addresses and other handles
cuMemAlloc_v2 out=100 bytes=1001 > alloc device 1001 @100
cuMemAllocManaged out=102 bytes=1002 > alloc managed 1002 @102
cuMemHostAlloc out=103 bytes=1003 > alloc pinned 1003 @103
cuMemHostRegister_v2 address=104 bytes=1004 > alloc registered 1004 @104
cuIpcOpenMemHandle_v2 out=105 > alloc imported - @105
cuArrayCreate_v2 out=100 bytes=10 height=4 format=32 channels=2 > alloc array 320 @100
cuImportExternalMemory out=100 bytes=1005 > alloc external 1005 @100
cuMemAllocAsync out=106 bytes=1006 stream=0 > alloc pool 1006 @106
cuMemAddressReserve out=100 bytes=10000 > alloc reserved 10000 @100
cuMemPoolCreate out=100 location=1 device=0 > alloc pool-object - @100
cuMemCreate out=100 bytes=1007 location=1 device=0 > alloc vmm 1007 @100
cuMemMap address=107 bytes=1007 handle=100 > alloc mapped 1007 @107
cuMulticastCreate out=111 > alloc multicast - @111
# the same kinds, in a context whose end releases some of them
cuCtxCreate_v2 out=c1 device=0
cuMemAlloc_v2 out=200 bytes=1001 > alloc device 1001 @200
cuMemAllocManaged out=202 bytes=1002 > alloc managed 1002 @202
cuMemHostAlloc out=203 bytes=1003 > alloc pinned 1003 @203
cuMemHostRegister_v2 address=204 bytes=1004 > alloc registered 1004 @204
cuIpcOpenMemHandle_v2 out=205 > alloc imported - @205
cuArrayCreate_v2 out=200 bytes=10 height=4 format=32 channels=2 > alloc array 320 @200
cuImportExternalMemory out=200 bytes=1005 > alloc external 1005 @200
cuMemAllocAsync out=206 bytes=1006 stream=0 > alloc pool 1006 @206
cuMemAddressReserve out=200 bytes=10000 > alloc reserved 10000 @200
cuMemPoolCreate out=200 location=1 device=0 > alloc pool-object - @200
cuMemCreate out=200 bytes=1007 location=1 device=0 > alloc vmm 1007 @200
cuMemMap address=207 bytes=1007 handle=200 > alloc mapped 1007 @207
cuMulticastCreate out=211 > alloc multicast - @211
cuCtxDestroy_v2 handle=c1 =1
# its end
cuCtxDestroy_v2 handle=c1 > gone device 1001 @200 > gone managed 1002 @202 > gone pinned 1003 @203
 > gone registered 1004 @204 > gone imported - @205 > gone array 320 @200 > gone external 1005 @200
# a new context reuses a handle and an address, and the one below becomes current again
cuCtxCreate_v2 out=c1 device=0
cuMemAlloc_v2 out=200 bytes=50 > alloc device 50 @200
cuCtxCreate_v2 out=c2 device=0
cuMemAlloc_v2 out=300 bytes=700 > alloc device 700 @300
cuCtxDestroy_v2 handle=c2 > gone device 700 @300
cuMemAlloc_v2 out=300 bytes=8 > alloc device 8 @300
cuMemFree_v2 address=200 > free device 50 @200
cuCtxDestroy_v2 handle=c1 > gone device 8 @300
cuMemAlloc_v2 out=300 bytes=3 > alloc device 3 @300
cuMemFree_v2 address=300 > free device 3 @300
# a primary context is reset
cuDevicePrimaryCtxRetain out=b3 device=3
cuCtxSetCurrent handle=b3
cuMemAlloc_v2 out=a000 bytes=6000 > alloc device 6000 @a000
cuMemAllocAsync out=b000 bytes=70 stream=0 > alloc pool 70 @b000
cuDevicePrimaryCtxReset_v2 device=3 =1
cuDevicePrimaryCtxReset_v2 device=3 > gone device 6000 @a000
cuMemFree_v2 address=b000 > free pool 70 @b000
# a primary context may have holders that were not seen
cuDevicePrimaryCtxRetain out=b3 device=3
cuMemAlloc_v2 out=a000 bytes=6000 > alloc device 6000 @a000
cuDevicePrimaryCtxRelease_v2 device=3
cuDevicePrimaryCtxRelease_v2 device=3
cuMemFree_v2 address=a000 > free device 6000 @a000
# if all were seen, it ends with the last release
see-from-start
cuDevicePrimaryCtxRetain out=b4 device=4
cuDevicePrimaryCtxRetain out=b4 device=4
cuDevicePrimaryCtxRetain out=b4 device=4
cuCtxSetCurrent handle=b4
cuMemAlloc_v2 out=a000 bytes=6000 > alloc device 6000 @a000
cuDevicePrimaryCtxRelease_v2 device=4
cuDevicePrimaryCtxRelease_v2 device=4 =1
cuDevicePrimaryCtxRelease_v2 device=4
cuMemAlloc_v2 out=b000 bytes=1 > alloc device 1 @b000
cuMemFree_v2 address=b000 > free device 1 @b000
cuDevicePrimaryCtxRelease_v2 device=4 > gone device 6000 @a000
# each kind of memory is freed
cuMemFree_v2 address=100 > free device 1001 @100
cuMemFree_v2 address=102 > free managed 1002 @102
cuMemFreeHost address=103 > free pinned 1003 @103
cuMemHostUnregister address=104 > free registered 1004 @104
cuIpcCloseMemHandle address=105 > free imported - @105
cuArrayDestroy address=100 > free array 320 @100
cuDestroyExternalMemory address=100 > free external 1005 @100
cuMemFreeAsync address=106 stream=0 > free pool 1006 @106
cuMemAddressFree address=100 > free reserved 10000 @100
cuMemPoolDestroy address=100 > free pool-object - @100
cuMemUnmap address=107 bytes=1007 > free mapped 1007 @107
cuMemRelease handle=100 > free vmm 1007 @100
cuMemRelease handle=111 > free multicast - @111

# HIP: a context is only a reference to its device, whose reset frees the device's memory
hipSetDevice device=1
hipMalloc out=1000 bytes=1000 > alloc device 1000 @1000
hipMallocAsync out=1001 bytes=600 stream=0 > alloc pool 600 @1001
hipHostMalloc out=1002 bytes=50 > alloc pinned 50 @1002
hipMallocManaged out=1003 bytes=7 > alloc managed 7 @1003
hipIpcOpenMemHandle out=1008 > alloc imported - @1008
hipArrayCreate out=1000 bytes=4 height=2 format=1 channels=1 > alloc array 8 @1000
hipImportExternalMemory out=1000 bytes=9 > alloc external 9 @1000
hipDevicePrimaryCtxRetain out=d1 device=0
hipCtxSetCurrent handle=d1
hipMalloc out=1004 bytes=100 > alloc device 100 @1004
hipCtxCreate out=d2 device=1
hipDeviceReset =1
hipMalloc out=1005 bytes=100 > alloc device 100 @1005
hipCtxPushCurrent handle=d2
hipDeviceReset > gone device 1000 @1000 > gone pool 600 @1001 > gone imported - @1008 > gone array 8 @1000
hipMalloc out=1006 bytes=30 > alloc device 30 @1006
hipFree address=1005 > free device 100 @1005
# HIP: a thread that sets no device uses the first one
thread hipMalloc out=1007 bytes=5 > alloc device 5 @1007
thread hipDeviceReset > gone device 100 @1004 > gone device 5 @1007
# a context ends that is older than the tool, and what it held is unknown
cuCtxDestroy_v2 handle=c9 > approximate
)";

struct Effect {
    explicit Effect(std::string line) : text(std::move(line))
    {
        for (const std::string& word : words_of(text))
            if (word[0] == '=')
                result = std::stoi(word.substr(1));
            else if (word[0] == '@')
                address = word.substr(1);
            else if (word == "captured")
                captured = true;
            else if (operation.empty())
                operation = word;
            else if (kind.empty())
                kind = word;
            else if (word != "-")
                bytes = std::stoull(word);
    }
    bool is_line() const { return operation != "gone" && operation != "approximate"; }
    bool is_device() const { return kind == "device" || kind == "pool" || kind == "vmm" || kind == "array"; }
    // True for kinds that tables by process count. Other kinds are only in tables by kind.
    bool is_memory() const { return is_device() || kind == "managed" || kind == "pinned" || kind == "registered"; }
    int64_t amount() const { return static_cast<int64_t>(bytes.value_or(0)); }

    std::string text, operation, kind, address;
    std::optional<uint64_t> bytes;
    int result = 0;
    bool captured = false;
};

// The text of a line of -e, in the form of Effect.
std::string text_of(const json& line)
{
    const int result = line["result_code"];
    return fmt::format("{} {} {} @{}{}{}", line["operation"].get<std::string>(), line["kind"].get<std::string>(),
                       line.contains("bytes") ? line["bytes"].dump() : "-",
                       line["address"].get<std::string>().substr(2), result ? fmt::format(" ={}", result) : "",
                       line["captured"] == 1 ? " captured" : "");
}

struct Call {
    std::string text;
    std::vector<Effect> effects;
};

struct Section {
    std::string title;
    std::vector<Call> calls;
};

const std::vector<Section>& sections()
{
    static const std::vector<Section> all = [] {
        std::vector<Section> parsed;
        std::istringstream stream{std::string(program)};
        for (std::string line; std::getline(stream, line);)
            if (line.starts_with('#')) {
                parsed.push_back({line.substr(2), {}});
            } else if (!line.empty()) {
                size_t end = line.find(" > ");
                if (end > 0) // else it continues the line above
                    parsed.back().calls.push_back({line.substr(0, end), {}});
                while (end != line.npos) {
                    const size_t begin = end + 3;
                    end = line.find(" > ", begin);
                    parsed.back().calls.back().effects.emplace_back(line.substr(begin, end - begin));
                }
            }
        return parsed;
    }();
    return all;
}

// Two layers free each other's memory. Driver calls inside of a call of the runtime belong to it. In the last pair,
// only the runtime's call fails.
constexpr std::string_view calls_of_both_layers =
    "enter cudaMalloc out=a000 bytes=1000; cuMemAlloc_v2 out=a000 bytes=1000; leave; cuMemAlloc_v2 out=b000 bytes=2000;"
    "enter cudaFree address=b000; cuMemFree_v2 address=b000; leave; cuMemFree_v2 address=a000;"
    "enter cudaMalloc out=a000 bytes=77; cuMemAlloc_v2 out=a000 bytes=77; leave =2; cuMemFree_v2 address=a000";

std::vector<json> report_of(const std::string& words)
{
    FakeRun run(words);
    for (const Section& section : sections())
        for (const Call& call : section.calls)
            make_calls(run, call.text);
    return run.report();
}

// All effects of the program, and of each call the first one that is a line.
template<class F>
void for_each_effect(F&& found)
{
    for (const Section& section : sections())
        for (const Call& call : section.calls) {
            bool begins = true;
            for (const Effect& effect : call.effects) {
                found(effect, begins && effect.is_line());
                begins &= !effect.is_line();
            }
        }
}

void add(json& row, const std::string& key, int64_t n = 1)
{
    json& sum = row[key];
    sum = (sum.is_null() ? 0 : sum.get<int64_t>()) + n;
}

// The values of `row` that `keys` has.
json part_of(const json& row, const json& keys)
{
    json part;
    for (const auto& [key, value] : keys.items())
        part[key] = row.contains(key) ? row[key] : json();
    return part;
}

// The row of a process: counts of an interval, and the memory that it holds.
struct ProcessRow {
    void begin_interval()
    {
        for (const char* key :
             {"allocs", "frees", "allocated_bytes", "freed_bytes", "failures", "out_of_memory", "released",
              "released_bytes", "unknown_frees", "untracked", "unsized", "captured", "trims"})
            row[key] = 0;
        row["failed_bytes"] = nullptr;
    }

    void apply(const Effect& e)
    {
        const bool is_alloc = e.operation == "alloc";
        if (e.operation == "approximate") {
            row["approximate"] = 1;
        } else if (e.result) {
            add(row, "failures");
            if (is_alloc && e.result == 2) {
                add(row, "out_of_memory");
                row["failed_bytes"] = e.amount();
            }
        } else if (e.operation == "trim") {
            add(row, "trims");
        } else if (e.kind == "unknown") {
            add(row, "unknown_frees");
        } else if (e.kind != "graph" || e.captured) { // only a free node removes memory from a graph
            hold(e, is_alloc ? 1 : -1);
            add(row, "captured", e.captured);
            if (!e.is_memory())
                return;
            const bool is_free = e.operation == "free";
            add(row, is_alloc ? "allocs" : is_free ? "frees" : "released");
            add(row, is_alloc ? "allocated_bytes" : is_free ? "freed_bytes" : "released_bytes", e.amount());
            add(row, "unsized", is_alloc && !e.bytes);
            add(row, "live_allocations", is_alloc ? 1 : -1);
        }
    }

    json row = {{"approximate", 0}, {"live_allocations", 0}, {"live_bytes", 0},
                {"peak_bytes", 0},  {"imported", 0},         {"pools", 0}};

private:
    void hold(const Effect& e, int sign)
    {
        if (e.kind == "imported" || e.kind == "pool-object")
            add(row, e.kind == "imported" ? "imported" : "pools", sign);
        else if (e.kind != "multicast")
            add(row, e.kind + "_bytes", sign * e.amount());
        if (e.is_device())
            add(row, "live_bytes", sign * e.amount());
        row["peak_bytes"] = std::max(row["peak_bytes"], row["live_bytes"]);
    }
};

// Passes values to a call that allocates or frees memory with the handle or address `place`. Arrays have 1000 x 40 x 3
// elements of 8 bytes, and 3 levels. Rows of memory with a pitch take 1024 bytes.
void pass_values(FakeRun& run, CompiledCall& call, uint64_t place)
{
    const std::map<int, uint64_t> values = {
        {ARG_BYTES, 1000},   {ARG_HEIGHT, 40},     {ARG_DEPTH, 3},    {ARG_LEVELS, 3}, {ARG_FORMAT, 0x20},
        {ARG_CHANNELS, 2},   {ARG_STREAM, 0x5700}, {ARG_LOCATION, 1}, {ARG_DEVICE, 6}, {ARG_ADDRESS, place},
        {ARG_HANDLE, place}, {ARG_OUT, place},     {ARG_PITCH, 1024},
    };
    const auto memory = reinterpret_cast<uint64_t>(call.call->memory);
    for (const auto& [which, before] : std::map(call.passed[0])) {
        if (which == ARG_CHANNEL_BITS)
            call.pass(ARG_CHANNEL_BITS, address_of(run.memory({16 | uint64_t{16} << 32, 32})));
        else if (abi::is_result(which) && before - memory < sizeof(call.call->memory)) // in a structure
            *reinterpret_cast<uint64_t*>(before) = values.at(which);
        else if (values.contains(which))
            call.pass(static_cast<argument>(which),
                      abi::is_result(which) ? address_of(run.memory({values.at(which)})) : values.at(which));
    }
}

// The bytes that a call with these values allocates or, if it fails, requests; "-" if they are unknown.
std::string bytes_of(const CompiledCall& call, bool fails)
{
    const int rows = (call.passes(ARG_HEIGHT) ? 40 : 1) * (call.passes(ARG_DEPTH) ? 3 : 1);
    if (!call.passes(ARG_BYTES))
        return "-";
    if (call.passes(ARG_PITCH))
        return std::to_string(rows * (fails ? 1000 : 1024));
    if (!call.passes(ARG_FORMAT) && !call.passes(ARG_CHANNEL_BITS))
        return "1000";
    return std::to_string(8 * (1000 * rows + (call.passes(ARG_LEVELS) ? 500 * 20 * 1 + 250 * 10 * 1 : 0)));
}

} // namespace

TEST_CASE("every allocation and free has the values that compiled calls passed", "[bpf][gpualloc]")
{
    need_bpf();
    constexpr uint64_t place = 0x7f12'3456'7000;
    FakeRun run("gpualloc -e --api both");
    std::multimap<std::string, CompiledCall> calls; // by name without "_ptsz"
    std::set<std::string> untested;
    for (const CallSet& set : {alloc_calls, free_calls, handle_calls})
        for (CompiledCall& call : compiled_calls(run, set)) {
            const std::string name = call.probe.symbol.substr(0, call.probe.symbol.find("_ptsz"));
            untested.insert(name);
            pass_values(run, call, place);
            calls.emplace(name, std::move(call));
        }
    const auto called = [&](std::string_view names) {
        std::vector<const CompiledCall*> all;
        for (const std::string& name : words_of(names)) {
            const auto [first, last] = calls.equal_range(name);
            INFO(name);
            REQUIRE(first != last);
            std::transform(first, last, std::back_inserter(all), [](const auto& call) { return &call.second; });
            untested.erase(name);
        }
        return all;
    };
    const auto check = [&](const CompiledCall& call, int result, const std::string& text, bool lives = false) {
        run.call(call.probe, *call.call, result);
        const std::vector<json> lines = run.report();
        REQUIRE(lines.size() == 1);
        const json& line = lines[0];
        const Library library = call.probe.library;
        CHECK(text_of(line) == text + (result ? fmt::format(" ={}", result) : "") +
                                   (text.find(" graph ") != text.npos ? " captured" : ""));
        CHECK(line["function"] == call.probe.symbol);
        CHECK(line["layer"] == (library == Library::runtime ? "runtime" : library == Library::hip ? "hip" : "driver"));
        CHECK(line["vendor"] == (library == Library::hip ? "amd" : "nvidia"));
        CHECK(line["stream"] == (call.passes(ARG_STREAM) ? "0x5700" : "0x0"));
        CHECK((line["result"] == "ok") == (result == 0));
        CHECK(line["latency_ns"] > 0);
        CHECK((line.value("lifetime_ns", 0) > 0) == lives);
    };
    for (const auto& [kind, allocate, release] : pairs) {
        const auto made = called(allocate), freed = called(release);
        for (size_t i = 0; i < std::max(made.size(), freed.size()); i++) {
            const CompiledCall &a = *made[i % made.size()], &f = *freed[i % freed.size()];
            INFO(a.probe.symbol << ", " << f.probe.symbol);
            const bool unmaps = f.probe.row.kind == KIND_UNMAP;
            const auto text = [kind = kind](std::string_view operation, std::string_view bytes, uint64_t address) {
                return fmt::format("{} {} {} @{:x}", operation, kind, bytes, address);
            };
            check(a, 2, text("alloc", bytes_of(a, true), a.passes(ARG_ADDRESS) ? place : 0));
            check(a, 0, text("alloc", bytes_of(a, false), place));
            check(f, 1, text("free", unmaps ? "-" : bytes_of(a, false), place), !unmaps);
            check(f, 0, text("free", bytes_of(a, false), place), true);
            run.call(f.probe, *f.call);
            CHECK(run.report().at(0)["kind"] == "unknown");
        }
    }
    for (const CompiledCall* trim : called("cuMemPoolTrimTo cudaMemPoolTrimTo hipMemPoolTrimTo"))
        check(*trim, 0, "trim pool-object - @0");
    for (const CompiledCall* trim : called("cuDeviceGraphMemTrim cudaDeviceGraphMemTrim hipDeviceGraphMemTrim")) {
        run.call(trim->probe, *trim->call);
        CHECK(text_of(run.report().at(0)) == "trim graph - @0");
    }
    for (const std::string library : {"cu", "hip"}) { // a second reference to physical memory
        INFO(library);
        size_t lines = 0;
        for (const char* function : {"MemCreate", "MemRetainAllocationHandle", "MemRelease", "MemRelease"}) {
            const CompiledCall& call = *called(library + function)[0];
            run.call(call.probe, *call.call);
            lines += run.report().size();
        }
        CHECK(lines == 2); // of the allocation and of the last release
    }
    CHECK(untested == std::set<std::string>{});

    for (const Section& section : sections())
        for (const Call& call : section.calls) {
            make_calls(run, call.text);
            std::vector<std::string> want, got;
            for (const Effect& effect : call.effects)
                if (effect.is_line())
                    want.push_back(effect.text);
            std::ranges::transform(run.report(), std::back_inserter(got), text_of);
            INFO(section.title << ": " << call.text);
            CHECK(got == want);
        }
    make_calls(run, calls_of_both_layers);
    std::vector<std::pair<std::string, std::string>> got;
    for (const json& line : run.report())
        got.emplace_back(line["function"], text_of(line));
    CHECK(got == decltype(got){{"cudaMalloc", "alloc device 1000 @a000"},
                               {"cuMemAlloc_v2", "alloc device 2000 @b000"},
                               {"cudaFree", "free device 2000 @b000"},
                               {"cuMemFree_v2", "free device 1000 @a000"},
                               {"cudaMalloc", "alloc device 77 @0 =2"},
                               {"cuMemFree_v2", "free unknown - @a000"}});

    make_calls(run,
               "cuMemAlloc_v2 out=a000 bytes=65536; cuMemFree_v2 address=a000; cuMemHostAlloc out=b000 bytes=77 =2");
    std::istringstream text(run.report_in_text());
    std::vector<std::vector<std::string>> words;
    for (std::string line; std::getline(text, line);)
        words.push_back(words_of(line));
    REQUIRE(words.size() == 4);
    const auto has = [&](size_t line, std::initializer_list<const char*> wanted) {
        return std::ranges::search(words[line], wanted).size() == wanted.size();
    };
    CHECK(has(0, {"TIME(s)", "PID", "TID", "COMM"}));
    CHECK(has(0, {"CALL", "KIND", "BYTES", "ADDRESS", "HELD(s)", "LAT(us)", "RESULT", "FUNCTION"}));
    CHECK(has(1, {"alloc", "device", "64.0K", "0xa000", "-"}));
    CHECK(has(2, {"free", "device", "64.0K", "0xa000"}));
    CHECK(has(3, {"alloc", "pinned", "77", "0x0", "-"}));
    CHECK(words[3].back() == "cuMemHostAlloc");
    CHECK(run.losses().empty());
}

TEST_CASE("each section of a program changes the memory that its process holds", "[bpf][gpualloc]")
{
    need_bpf();
    FakeRun run("gpualloc");
    ProcessRow want;
    for (const Section& section : sections()) {
        want.begin_interval();
        for (const Call& call : section.calls) {
            make_calls(run, call.text);
            for (const Effect& effect : call.effects)
                want.apply(effect);
        }
        const std::vector<json> rows = run.report();
        INFO(section.title);
        REQUIRE(rows.size() <= 1);
        if (rows.empty()) {
            CHECK(want.row["live_allocations"] == 0);
            CHECK(std::ranges::all_of(section.calls, [](const Call& call) { return call.effects.empty(); }));
            continue;
        }
        const json& row = rows[0];
        CHECK(part_of(row, want.row) == want.row);
        CHECK(row["allocs_per_second"] == want.row["allocs"]); // an interval has one second
        CHECK(row["frees_per_second"] == want.row["frees"]);
        CHECK(row["churn_bytes_per_second"] ==
              want.row["allocated_bytes"].get<uint64_t>() + want.row["freed_bytes"].get<uint64_t>());
    }
    want.begin_interval(); // only the driver's calls are counted
    for (const char* effect : {"alloc device 1000", "alloc device 2000", "free device 2000", "free device 1000",
                               "alloc device 77", "free device 77"})
        want.apply(Effect(effect));
    make_calls(run, calls_of_both_layers);
    const std::vector<json> rows = run.report();
    REQUIRE(rows.size() == 1);
    CHECK(part_of(rows[0], want.row) == want.row);

    // the tool releases the memory of each ended context without scanning whole tables
    constexpr int contexts = 500;
    want.begin_interval();
    for (int i = 0; i < contexts; i++) {
        make_calls(run, "cuCtxCreate_v2 out=c1 device=0; cuMemAlloc_v2 out=a000 bytes=10; cuCtxDestroy_v2 handle=c1");
        want.apply(Effect("alloc device 10"));
        want.apply(Effect("gone device 10"));
    }
    const uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const json row = run.report().at(0);
    CHECK(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < 300'000'000);
    CHECK(part_of(row, want.row) == want.row);
    CHECK(run.losses().empty());
}

TEST_CASE("rows have the device, kind, size, function and thread of each allocation", "[bpf][gpualloc]")
{
    need_bpf();
    // compiled calls of each function that changes or ends a context
    struct Step {
        std::string_view call;
        int before, now; // device on which the thread allocates memory; -1: unknown
        int released = 0;
        std::string_view first{}; // calls that are made before
    };
    const Step steps[] = {
        {"cudaSetDevice device=5", -1, 5},
        {"hipSetDevice device=2", 0, 2},
        {"hipDevicePrimaryCtxRetain out=d3 device=3", 2, 2},
        {"hipCtxSetCurrent handle=d3", 2, 3},
        {"hipCtxCreate out=d6 device=6", 3, 3},
        {"hipCtxPushCurrent handle=d6", 3, 6},
        {"hipDeviceReset", 6, 6, 2},
        {"cuCtxCreate out=c1 device=1", 5, 1},
        {"cuCtxCreate_v2 out=c2 device=2", 1, 2},
        {"cuCtxCreate_v3 out=c3 device=3", 2, 3},
        {"cuCtxCreate_v4 out=c4 device=4", 3, 4},
        {"cuCtxPopCurrent out=0", 4, 3},
        {"cuCtxPopCurrent_v2 out=0", 3, 2},
        {"cuCtxPushCurrent handle=c4", 2, 4},
        {"cuCtxPushCurrent_v2 handle=c1", 4, 1},
        {"cuCtxSetCurrent handle=c3", 1, 3},
        {"cuCtxDestroy handle=c3", 3, 4, 6}, // the context below becomes current
        {"cuCtxDestroy_v2 handle=c1", 4, 4, 4},
        {"cuDevicePrimaryCtxRetain out=b7 device=7", 4, 4},
        {"cuDevicePrimaryCtxReset device=7", 7, 7, 1, "cuCtxSetCurrent handle=b7"},
        {"cuDevicePrimaryCtxReset_v2 device=7", 7, 7, 1, "cuDevicePrimaryCtxRetain out=b7 device=7"},
        {"cuDevicePrimaryCtxRelease device=8", 8, 8, 1,
         "cuDevicePrimaryCtxRetain out=b8 device=8; cuCtxSetCurrent handle=b8"},
        {"cuDevicePrimaryCtxRelease_v2 device=9", 9, 9, 1,
         "cuDevicePrimaryCtxRetain out=b9 device=9; cuCtxSetCurrent handle=b9"},
    };
    FakeRun run("gpualloc --by kind,size,device,api,thread --api both -r 0");
    run.see_from_start();
    std::map<std::string, CompiledCall> calls;
    for (const CallSet& set : {device_calls, context_ends})
        for (CompiledCall& call : compiled_calls(run, set))
            calls.emplace(call.probe.symbol, std::move(call));
    uint64_t address = 1;
    for (const Step& step : steps) {
        const WrittenCall parsed = parse_call(run, words_of(step.call));
        INFO(step.call);
        REQUIRE(calls.contains(parsed.function));
        CompiledCall call = calls.extract(parsed.function).mapped();
        for (const auto& [which, value] : parsed.arguments)
            call.pass(which, value);
        make_calls(run, step.first);
        for (const int result : {1, 0}) { // a call that fails changes nothing
            run.call(call.probe, *call.call, result);
            const Library library = call.probe.library;
            const char* const allocate = library == Library::hip       ? "hipMalloc"
                                         : library == Library::runtime ? "cudaMalloc"
                                                                       : "cuMemAlloc_v2";
            make_calls(run, fmt::format("{} out={:x} bytes=1", allocate, address++));
            std::vector<int> devices;
            int released = 0;
            for (const json& row : run.report()) {
                released += row["released"].get<int>();
                if (row["allocs"] == 1)
                    devices.push_back(row.value("device", -1));
            }
            INFO(result);
            CHECK(devices == std::vector{result ? step.before : step.now});
            CHECK(released == (result ? 0 : step.released));
        }
    }
    CHECK(calls.empty());

    // a free counts in the row of its allocation
    using Key = std::tuple<std::string, std::string, json, json, bool>; // kind, function, size, device, other thread
    std::map<Key, std::array<uint64_t, 5>> rows; // allocations, frees, live bytes, allocated and freed bytes
    make_calls(run, "cuDevicePrimaryCtxRetain out=bf device=15; cuCtxSetCurrent handle=bf; cudaSetDevice device=15");
    make_calls(
        run,
        "cuMemAlloc_v2 out=1 bytes=1; cuMemAlloc_v2 out=2 bytes=1023; cuMemAlloc_v2 out=3 bytes=1024;"
        "cuMemAlloc_v2 out=4 bytes=2047; cuMemHostAlloc out=5 bytes=2000; thread cuMemFree_v2 address=4;"
        "thread cuMemFreeHost address=5; thread cuMemAlloc_v2 out=6 bytes=700; cuMemFree_v2 address=6;"
        "cudaMalloc out=7 bytes=3; cuMemCreate out=8 bytes=3 location=1 device=9;"
        "cuMemCreate out=9 bytes=3 location=2 device=9; cuArrayCreate_v2 out=a format=63;"
        "cuMemAddressReserve out=1 bytes=4096; cuMemMap address=b bytes=16 handle=8; cuMemUnmap address=b bytes=16;"
        "cuMemPoolCreate out=1 location=1 device=4; cuStreamBeginCapture_v2 stream=1;"
        "cuMemAllocAsync out=c bytes=8 stream=1; cuMemFreeAsync address=c stream=1");
    for (const json& row : run.report())
        if (row["allocs"] != 0)
            rows[{row["kind"], row["function"], row.value("size_bytes", json()), row.value("device", json()),
                  row["tid"] != row["pid"]}] = {row["allocs"], row["frees"], row["live_bytes"], row["allocated_bytes"],
                                                row["freed_bytes"]};
    CHECK(rows == decltype(rows){{{"device", "cuMemAlloc_v2", 1, 15, false}, {1, 0, 1, 1, 0}},
                                 {{"device", "cuMemAlloc_v2", 512, 15, false}, {1, 0, 1023, 1023, 0}},
                                 {{"device", "cuMemAlloc_v2", 1024, 15, false}, {2, 1, 1024, 3071, 2047}},
                                 {{"pinned", "cuMemHostAlloc", 1024, 15, false}, {1, 1, 0, 2000, 2000}},
                                 {{"device", "cuMemAlloc_v2", 512, nullptr, true}, {1, 1, 0, 700, 700}},
                                 {{"device", "cudaMalloc", 2, 15, false}, {1, 0, 3, 3, 0}},
                                 {{"vmm", "cuMemCreate", 2, 9, false}, {1, 0, 3, 3, 0}},
                                 {{"pinned", "cuMemCreate", 2, nullptr, false}, {1, 0, 3, 3, 0}},
                                 {{"array", "cuArrayCreate_v2", nullptr, 15, false}, {1, 0, 0, 0, 0}},
                                 {{"reserved", "cuMemAddressReserve", 4096, 15, false}, {1, 0, 4096, 4096, 0}},
                                 {{"mapped", "cuMemMap", 16, 15, false}, {1, 1, 0, 16, 16}},
                                 {{"pool-object", "cuMemPoolCreate", nullptr, 4, false}, {1, 0, 0, 0, 0}},
                                 {{"graph", "cuMemAllocAsync", 8, 15, false}, {1, 1, 0, 8, 8}}});
    for (CompiledCall& call : compiled_calls(run, alloc_calls))
        if (call.passes(ARG_LOCATION)) {
            INFO(call.probe.symbol << ", " << int{call.probe.runtimes});
            pass_values(run, call, 0x7f00);
            run.call(call.probe, *call.call);
            std::vector<json> devices;
            for (const json& row : run.report())
                if (row["allocs"] == 1)
                    devices.push_back(row["device"]);
            CHECK(devices == std::vector<json>{6});
        }
    CHECK(run.losses().empty());
}

TEST_CASE("with -x, rows have only failed calls", "[bpf][gpualloc]")
{
    need_bpf();
    // Memory is not followed, so it is not known which memory a failed call would have freed.
    using Key = std::tuple<std::string, std::string, int, json>; // operation, kind, result, size
    std::map<Key, std::array<uint64_t, 3>> want, rows;           // failures, out of memory, last bytes
    for_each_effect([&](const Effect& e, bool) {
        if (!e.result)
            return;
        const bool is_alloc = e.operation == "alloc";
        auto& [failures, out_of_memory, bytes] =
            want[{e.operation, e.operation == "free" && e.kind != "mapped" ? "unknown" : e.kind, e.result,
                  is_alloc ? json(std::bit_floor(*e.bytes)) : json()}];
        failures++;
        out_of_memory += is_alloc && e.result == 2;
        bytes = is_alloc ? *e.bytes : 0;
    });
    for (const json& row : report_of("gpualloc -x --by kind,size"))
        rows[{row["operation"], row["kind"], row["result_code"], row.value("size_bytes", json())}] = {
            row["failures"], row["out_of_memory"], row.value("failed_bytes", uint64_t{0})};
    CHECK(rows == want);
}

TEST_CASE("histograms have the size, duration or lifetime of each call", "[bpf][gpualloc]")
{
    need_bpf();
    std::map<std::string, std::multiset<uint64_t>> sizes; // by kind
    std::map<std::string, uint64_t> calls, got;           // by operation, by kind
    for_each_effect([&](const Effect& e, bool begins) {
        if (begins)
            calls[e.operation]++;
        if (e.operation == "alloc" && !e.result && e.bytes)
            sizes[e.kind].insert(*e.bytes);
    });
    for (const json& histogram : report_of("gpualloc -H size --by kind")) {
        INFO(histogram);
        const auto found = sizes.extract(histogram["kind"].get<std::string>());
        REQUIRE(found);
        CHECK(histogram["total"] == found.mapped().size());
        for (const json& bucket : histogram["buckets"])
            CHECK(bucket["count"] == std::distance(found.mapped().lower_bound(bucket["low"].get<uint64_t>()),
                                                   found.mapped().upper_bound(bucket["high"].get<uint64_t>())));
    }
    CHECK(sizes.empty());
    for (const json& histogram : report_of("gpualloc -H latency"))
        got[histogram["operation"]] += histogram["total"].get<uint64_t>();
    CHECK(got == calls);

    FakeRun run("gpualloc -H lifetime -m --by kind");
    make_calls(run, "cuMemAlloc_v2 out=a000 bytes=1; cuMemAlloc_v2 out=b000 bytes=1; cuMemHostAlloc out=c000 bytes=1");
    std::this_thread::sleep_for(20ms);
    make_calls(run,
               "cuMemFree_v2 address=a000 =1; thread cuMemFree_v2 address=a000; cuMemAllocManaged out=d000 bytes=1;"
               "cuMemFree_v2 address=d000; cuMemAllocManaged out=d000 bytes=1; cuMemFree_v2 address=d000");
    got.clear();
    for (const json& histogram : run.report()) {
        got[histogram["kind"]] = histogram["total"];
        for (const json& bucket : histogram["buckets"])
            CHECK((bucket["high"] >= 20) == (histogram["kind"] == "device"));
    }
    CHECK(got == decltype(got){{"device", 1}, {"managed", 2}});
}

TEST_CASE("-t selects the allocations of a thread, and their frees by any thread", "[bpf][gpualloc]")
{
    need_bpf();
    FakeRun run(fmt::format("gpualloc --by thread -t {}", gettid()));
    make_calls(run, "cuMemAlloc_v2 out=1 bytes=1000; cuMemHostAlloc out=2 bytes=50; cuMemAlloc_v2 out=3 bytes=3;"
                    "thread cuMemAlloc_v2 out=4 bytes=4; thread cuMemFree_v2 address=1; thread cuMemFree_v2 address=9;"
                    "cuMemFreeHost address=2; cuMemFree_v2 address=4");
    const std::vector<json> rows = run.report();
    REQUIRE(rows.size() == 1);
    const json want = {{"tid", gettid()},     {"allocs", 3},        {"frees", 2},     {"allocated_bytes", 1053},
                       {"freed_bytes", 1050}, {"unknown_frees", 1}, {"live_bytes", 3}};
    CHECK(part_of(rows[0], want) == want);
    CHECK(run.losses().empty());
}

TEST_CASE("leaks are unfreed memory, by kind, call stack and age", "[bpf][gpualloc]")
{
    need_bpf();
    FakeRun run("gpualloc --leaks -o 10", {{"held", 8}}); // in a small hash, and in the trie beyond it
    const auto ten_seconds_pass = [&] {
        for (const char* table : {"held", "held_beyond"}) {
            const bpf_map* const map = bpf_object__find_map_by_name(run.tool().opened().object, table);
            std::vector<std::vector<std::byte>> keys;
            std::vector<std::byte> key(bpf_map__key_size(map));
            while (bpf_map_get_next_key(bpf_map__fd(map), keys.empty() ? nullptr : keys.back().data(), key.data()) == 0)
                keys.push_back(key);
            for (const std::vector<std::byte>& each : keys) {
                held entry{};
                REQUIRE(bpf_map_lookup_elem(bpf_map__fd(map), each.data(), &entry) == 0);
                entry.since_ns -= 10'000'000'000;
                REQUIRE(bpf_map_update_elem(bpf_map__fd(map), each.data(), &entry, BPF_EXIST) == 0);
            }
        }
    };
    const auto leaks = [&] {
        json all = json::object(); // by kind: bytes and count of each stack
        for (const json& row : run.report()) {
            CHECK(row["oldest_ns"] >= 10'000'000'000);
            CHECK(row["frames"].size() == 1);
            all[row["kind"]].push_back({row["bytes"], row["allocations"]});
        }
        return all.dump();
    };
    make_calls(
        run, "cuMemAlloc_v2 out=1 bytes=100; cuMemAlloc_v2 out=2 bytes=100; cuCtxCreate_v2 out=c1 device=0;"
             "cuMemAlloc_v2 out=3 bytes=1000; cuMemAllocPitch_v2 out=4 pitch=10 bytes=8 height=2; cuMemHostAlloc out=5 "
             "bytes=70; cuIpcOpenMemHandle_v2 out=6; cuMemAddressReserve out=1 bytes=1");
    CHECK(leaks() == "{}");
    ten_seconds_pass();
    make_calls(run, "cuMemAlloc_v2 out=7 bytes=5");
    CHECK(leaks() == R"({"device":[[1200,3],[32,1]],"imported":[[0,1]],"pinned":[[70,1]]})");
    make_calls(run, "cuMemFree_v2 address=2; cuIpcCloseMemHandle address=6; cuCtxDestroy_v2 handle=c1");
    CHECK(leaks() == R"({"device":[[100,1]]})");
    for (int i = 1; i <= 30; i++)
        make_calls(run, fmt::format("cuMemAllocManaged out={:x} bytes=8", 100 + i));
    ten_seconds_pass();
    CHECK(leaks() == R"({"device":[[100,1]],"managed":[[240,30]]})");
    for (int i = 1; i < 30; i++)
        make_calls(run, fmt::format("cuMemFree_v2 address={:x}", 100 + i));
    CHECK(leaks() == R"({"device":[[100,1]],"managed":[[8,1]]})");
    CHECK(run.losses().empty());
}

TEST_CASE("exits of processes, the memory that they held, and their entries in tables", "[bpf][gpualloc]")
{
    need_bpf();
    FakeRun run("gpualloc --exited");
    const auto run_child = [&](std::string_view calls) {
        const pid_t pid = fork();
        if (pid == 0) {
            make_calls(run, calls);
            _exit(0);
        }
        REQUIRE(waitpid(pid, nullptr, 0) == pid);
        return pid;
    };
    make_calls(run, "cuMemAlloc_v2 out=1 bytes=44"); // of this process, which continues
    const pid_t holder = run_child(
        "cuCtxCreate_v2 out=c1 device=0; cuMemAlloc_v2 out=1 bytes=1000; cuMemAlloc_v2 out=2 bytes=500; cuMemHostAlloc "
        "out=3 bytes=600; cuMemCreate out=1 bytes=4096 location=1 device=0; cuMemAddressReserve out=1 bytes=9999;"
        "cuMemMap address=4 bytes=4096 handle=1; cuDevicePrimaryCtxRetain out=c2 device=0; cuStreamBeginCapture_v2 "
        "stream=1");
    const pid_t other = run_child("cuMemAlloc_v2 out=1 bytes=70; cuMemFree_v2 address=1");
    const std::vector<const char*> tables = {"held",     "held_bytes", "context_bytes", "physicals", "physical_handles",
                                             "mappings", "contexts",   "primaries",     "captures",  "shares"};
    const auto has = [&](const char* table, pid_t pid) {
        const bpf_map* const map = bpf_object__find_map_by_name(run.tool().opened().object, table);
        const size_t prefix = bpf_map__type(map) == BPF_MAP_TYPE_LPM_TRIE ? sizeof(place_key::prefix) : 0;
        std::vector<std::byte> key(bpf_map__key_size(map)), last;
        while (bpf_map_get_next_key(bpf_map__fd(map), last.empty() ? nullptr : last.data(), key.data()) == 0) {
            if (memcmp(key.data() + prefix + offsetof(image, pid), &pid, sizeof(pid)) == 0)
                return true;
            last = key;
        }
        return false;
    };
    for (const char* table : tables) {
        INFO(table);
        CHECK(has(table, holder));
    }
    using Lines = std::vector<std::tuple<std::string, std::string, uint64_t, uint64_t>>; // event, kind, bytes, count
    std::map<pid_t, Lines> exits;
    for (const json& line : run.report())
        exits[line["pid"]].emplace_back(line["event"], line["kind"], line["held_bytes"], line["held_allocations"]);
    CHECK(exits == decltype(exits){{holder,
                                    {{"exit", "all", 6196, 4},
                                     {"held", "vmm", 4096, 1},
                                     {"held", "device", 1500, 2},
                                     {"held", "pinned", 600, 1}}},
                                   {other, {{"exit", "all", 0, 0}}}});
    CHECK(run.report().empty());
    for (const char* table : tables) {
        INFO(table);
        CHECK_FALSE(has(table, holder));
        CHECK_FALSE(has(table, other));
    }
    CHECK(has("held", getpid()));
    CHECK(run.losses().empty());
}

TEST_CASE("full tables, unreadable memory, and calls that do not return", "[bpf][gpualloc]")
{
    need_bpf();
    FakeRun run("gpualloc --by pid,kind --live-entries 1024", {{"physicals", 4}, {"mappings", 4}, {"contexts", 4}});
    using Losses = std::map<std::string, uint64_t>;
    json sums;
    const auto report = [&] { // the sums of this process, and which of its rows are approximate
        json row = json::object();
        for (const json& each : run.report())
            if (each["pid"] == getpid()) {
                for (const char* key :
                     {"allocs", "frees", "unknown_frees", "released", "untracked", "unsized", "live_allocations"})
                    add(row, key, each[key]);
                row["approximate"] = each["approximate"];
            } else {
                CHECK(each["approximate"] == 0);
                CHECK(each["released"] == 1);
            }
        return row;
    };
    const auto check = [&](const json& want, const Losses& losses) {
        const json row = report();
        CHECK(part_of(row, want) == want);
        CHECK(run.losses() == losses);
    };

    // entries of ended contexts make room for others: these are more than the table has
    for (int i = 0; i < 7; i++) {
        make_calls(run, "cuCtxCreate_v2 out=c1 device=0");
        for (int at = 1; at <= 250; at++)
            make_calls(run, fmt::format("cuMemAlloc_v2 out={:x} bytes=64", i * 1000 + at));
        make_calls(run, "cuCtxDestroy_v2 handle=c1");
        check({{"allocs", 250}, {"released", 250}, {"untracked", 0}, {"live_allocations", 0}}, {});
    }
    // a process may have three quarters of the entries; another one has room
    for (int at = 1; at <= 1100; at++)
        make_calls(run, fmt::format("cuMemAlloc_v2 out={:x} bytes=64", at));
    if (const pid_t pid = fork(); pid == 0) {
        make_calls(run, "cuMemAlloc_v2 out=1 bytes=64");
        _exit(0);
    } else {
        REQUIRE(waitpid(pid, nullptr, 0) == pid);
    }
    check({{"allocs", 1100}, {"untracked", 76}, {"live_allocations", 1024}, {"approximate", 1}},
          {{"allocations_untracked", 76}});
    for (int at = 1; at <= 1100; at++)
        make_calls(run, fmt::format("cuMemFree_v2 address={:x}", at));
    check({{"frees", 1024}, {"unknown_frees", 76}}, {});
    make_calls(run, "cuMemAlloc_v2 out=a000 bytes=1; cuMemFree_v2 address=a000");
    check({{"allocs", 1}, {"frees", 1}, {"untracked", 0}}, {});
    // tables of 4 entries
    make_calls(run, "cuMemCreate out=1 bytes=1 location=1 device=0; cuMemCreate out=2 bytes=1 location=1 device=0;"
                    "cuMemCreate out=3 bytes=1 location=1 device=0; cuMemCreate out=4 bytes=1 location=1 device=0");
    check({{"allocs", 4}, {"untracked", 1}}, {{"allocations_untracked", 1}});
    make_calls(run,
               "cuMemMap address=1 bytes=1 handle=1; cuMemMap address=2 bytes=1 handle=1; cuMemMap address=3 bytes=1 "
               "handle=1; cuMemMap address=4 bytes=1 handle=1; cuMemMap address=5 bytes=1 handle=99");
    check({{"allocs", 5}, {"untracked", 0}}, {{"state_lost", 1}});
    make_calls(run, "cuCtxCreate_v2 out=c1 device=0; cuCtxCreate_v2 out=c2 device=0; cuCtxCreate_v2 out=c3 device=0;"
                    "cuCtxCreate_v2 out=c4 device=0");
    check({}, {{"state_lost", 1}});

    // unreadable arguments and results
    run.break_memory();
    make_calls(run, "cuArrayCreate_v2 out=a000");
    check({{"allocs", 1}, {"unsized", 1}, {"untracked", 0}}, {{"arguments_unreadable", 1}});
    run.call("hipMallocArray", {{ARG_OUT, address_of(run.memory({0xb000}))}, {ARG_CHANNEL_BITS, FakeRun::unreadable}});
    check({{"allocs", 1}, {"unsized", 1}, {"untracked", 0}}, {{"arguments_unreadable", 1}});
    run.call("cuMemAlloc_v2", {{ARG_OUT, FakeRun::unreadable}, {ARG_BYTES, 1}});
    check({{"allocs", 1}, {"unsized", 0}, {"untracked", 1}}, {{"allocations_untracked", 1}});
    run.call("cuMemAllocPitch_v2", {{ARG_OUT, address_of(run.memory({0xc000}))},
                                    {ARG_PITCH, FakeRun::unreadable},
                                    {ARG_BYTES, 1},
                                    {ARG_HEIGHT, 3}});
    check({{"allocs", 1}, {"unsized", 1}, {"untracked", 1}}, {{"allocations_untracked", 1}});

    // calls that are left, and returns of calls that were not seen
    make_calls(run, "enter cuMemAlloc_v2 out=d000 bytes=1");
    run.jump_out();
    make_calls(run, "cuMemAlloc_v2 out=d001 bytes=1");
    check({{"allocs", 1}}, {{"calls_left", 1}});
    for (const char* function : {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemRelease"})
        run.leave_unseen(function);
    check({{"allocs", 0}, {"frees", 0}, {"unknown_frees", 0}}, {{"ends_unmatched", 3}});
}
