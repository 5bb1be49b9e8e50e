// SPDX-License-Identifier: Apache-2.0
// Copies, fills and prefetches. Each call is only counted, or becomes a node if its stream is capturing. Structures and
// arrays are never read, so their contents do not matter. To add a function, add a row.
#include "capture.hpp"

using namespace standin;

namespace {

int transfer(NodeType type, void* handle)
{
    if (int result = begin(Class::copy))
        return result;
    auto stream = static_cast<Stream*>(handle);
    return capturing(stream) ? record(stream, {.type = type}) : success;
}

} // namespace

// In the SysV calling convention, a function may declare more parameters than its caller passes, as long as it does not
// read them.
#define ARGUMENTS                                                                                                      \
    ([[maybe_unused]] void* a1, [[maybe_unused]] void* a2, [[maybe_unused]] void* a3, [[maybe_unused]] void* a4,       \
     [[maybe_unused]] void* a5, [[maybe_unused]] void* a6, [[maybe_unused]] void* a7, [[maybe_unused]] void* a8,       \
     [[maybe_unused]] void* a9)
#define SYNC(name)                                                                                                     \
    DRIVER(name)()                                                                                                     \
    {                                                                                                                  \
        return begin(Class::copy);                                                                                     \
    }
// `stream`: the parameter with the stream, such as a4.
#define ASYNC(name, type, stream)                                                                                      \
    DRIVER(name) ARGUMENTS                                                                                             \
    {                                                                                                                  \
        return transfer(NodeType::type, stream);                                                                       \
    }

SYNC(cuMemcpy)
ASYNC(cuMemcpyAsync, memcpy, a4)
SYNC(cuMemcpyHtoD_v2)
ASYNC(cuMemcpyHtoDAsync_v2, memcpy, a4)
SYNC(cuMemcpyDtoH_v2)
ASYNC(cuMemcpyDtoHAsync_v2, memcpy, a4)
SYNC(cuMemcpyDtoD_v2)
ASYNC(cuMemcpyDtoDAsync_v2, memcpy, a4)
SYNC(cuMemcpyPeer)
ASYNC(cuMemcpyPeerAsync, memcpy, a6)
SYNC(cuMemcpyHtoA_v2)
ASYNC(cuMemcpyHtoAAsync_v2, memcpy, a5)
SYNC(cuMemcpyAtoH_v2)
ASYNC(cuMemcpyAtoHAsync_v2, memcpy, a5)
SYNC(cuMemcpyDtoA_v2)
SYNC(cuMemcpyAtoD_v2)
SYNC(cuMemcpyAtoA_v2)
SYNC(cuMemcpy2D_v2)
SYNC(cuMemcpy2DUnaligned_v2)
ASYNC(cuMemcpy2DAsync_v2, memcpy, a2)
SYNC(cuMemcpy3D_v2)
ASYNC(cuMemcpy3DAsync_v2, memcpy, a2)
SYNC(cuMemcpy3DPeer)
ASYNC(cuMemcpy3DPeerAsync, memcpy, a2)
ASYNC(cuMemcpyBatchAsync, memcpy, a9)
ASYNC(cuMemcpyBatchAsync_v2, memcpy, a8)
ASYNC(cuMemcpy3DBatchAsync, memcpy, a5)
ASYNC(cuMemcpy3DBatchAsync_v2, memcpy, a4)
SYNC(cuMemsetD8_v2)
SYNC(cuMemsetD16_v2)
SYNC(cuMemsetD32_v2)
ASYNC(cuMemsetD8Async, memset, a4)
ASYNC(cuMemsetD16Async, memset, a4)
ASYNC(cuMemsetD32Async, memset, a4)
SYNC(cuMemsetD2D8_v2)
SYNC(cuMemsetD2D16_v2)
SYNC(cuMemsetD2D32_v2)
ASYNC(cuMemsetD2D8Async, memset, a6)
ASYNC(cuMemsetD2D16Async, memset, a6)
ASYNC(cuMemsetD2D32Async, memset, a6)
ASYNC(cuMemPrefetchAsync, other, a4)
ASYNC(cuMemPrefetchAsync_v2, other, a5)
ASYNC(cuMemPrefetchBatchAsync, other, a8)
