// SPDX-License-Identifier: Apache-2.0
// Calls of every function that copies, sets or prefetches, each with a different size. All addresses point to readable
// zeros, because libraries may read arguments before they refuse a call.
#include "calls.hpp"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

namespace {

using Word = uint64_t;
using Make = int (*)(void* function, Word bytes);

template<class... A>
int call(void* function, A... arguments)
{
    return reinterpret_cast<int (*)(A...)>(function)(arguments...);
}

// A 32-bit argument with garbage in the register's upper half, which the ABI leaves undefined.
Word dirty(uint32_t value)
{
    return 0xdeadbeef'00000000 | value;
}

Word zeros()
{
    static void* const page =
        mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return reinterpret_cast<Word>(page);
}

const Word dst = zeros() + 0x10000, src = zeros() + 0x40000, none = 0, stream = zeros() + 0x80000;
constexpr Word height = 3, depth = 2, elements = 3; // elements: number of copies in a batch
Word first[1], failed_index[1], attributes[8];

// A structure as an array of words; words that are not set are 0.
struct Words {
    Word word[40] = {};
    Words(std::initializer_list<std::pair<unsigned, Word>> set)
    {
        for (auto [i, value] : set)
            word[i] = value;
    }
};
constexpr Word host = 1, device = 2; // CUmemorytype

Words plane(Word n)
{
    return {{2, host}, {3, src}, {6, n}, {9, device}, {11, dst}, {13, n}, {14, n}, {15, height}};
}
Words volume(Word n) // also for peer copies
{
    return {{4, host}, {5, src},     {9, n},  {10, height}, {15, device}, {17, dst},
            {20, n},   {21, height}, {22, n}, {23, height}, {24, depth}};
}
Words runtime_volume(Word n)
{
    constexpr Word to_device = 1;
    return {{4, src}, {5, n},       {6, n},  {7, height},  {12, dst},   {13, n},
            {14, n},  {15, height}, {16, n}, {17, height}, {18, depth}, {19, to_device}};
}

struct Batch {
    Word to[elements] = {dst, dst + 4096, dst + 8192}, from[elements] = {src, src + 4096, src + 8192};
    Word sizes[elements];
    Word operations[elements][14] = {};
    explicit Batch(Word n)
    {
        for (Word i = 0; i < elements; i++) {
            sizes[i] = n + i;
            Word* op = operations[i];
            op[0] = op[5] = 1; // both operands are pointers
            op[1] = from[i], op[6] = to[i];
            op[10] = n + i, op[11] = height, op[12] = depth;
        }
    }
};

int linear(void* f, Word n)
{
    return call(f, dst, src, n, stream);
}
int to_array(void* f, Word n)
{
    return call(f, dst, none, src, n, stream);
}
int from_array(void* f, Word n)
{
    return call(f, dst, src, none, n, stream);
}
int between_arrays(void* f, Word n)
{
    return call(f, dst, none, src, none, n);
}
int peer(void* f, Word n)
{
    return call(f, dst, none, src, none, n, stream);
}
template<Words (*structure)(Word)>
int structured(void* f, Word n)
{
    const Words words = structure(n);
    return call(f, words.word, stream);
}
int batch(void* f, Word n)
{
    Batch b(n);
    return call(f, b.to, b.from, b.sizes, elements, attributes, first, Word(1), failed_index, stream);
}
int batch_v2(void* f, Word n)
{
    Batch b(n);
    return call(f, b.to, b.from, b.sizes, elements, attributes, first, Word(1), stream);
}
int volumes(void* f, Word n)
{
    Batch b(n);
    return call(f, elements, b.operations, failed_index, none, stream);
}
int volumes_v2(void* f, Word n)
{
    Batch b(n);
    return call(f, elements, b.operations, none, stream);
}
int with_attributes(void* f, Word n)
{
    return call(f, dst, src, n, attributes, stream);
}
int volume_with_attributes(void* f, Word n)
{
    Batch b(n);
    return call(f, b.operations, none, stream);
}
int set(void* f, Word n)
{
    return call(f, dst, dirty(0), n, stream);
}
int set_plane(void* f, Word n)
{
    return call(f, dst, 4 * n, dirty(0), n, height, stream);
}
int prefetch(void* f, Word n)
{
    return call(f, dst, n, dirty(0), stream);
}
int prefetch_v2(void* f, Word n)
{
    return call(f, dst, n, Word(1), dirty(0), stream);
}
int prefetch_batch(void* f, Word n)
{
    Batch b(n);
    return call(f, b.to, b.sizes, elements, attributes, first, Word(1), none, stream);
}
int linear_kind(void* f, Word n)
{
    return call(f, dst, src, n, dirty(1), stream);
}
int plane_kind(void* f, Word n)
{
    return call(f, dst, n, src, n, n, height, dirty(1), stream);
}

struct Row {
    const char* name;
    const char* direction;
    Make make;
    Word times;      // bytes copied per unit of the size argument
    Word copies = 1; // number of copies per call; their sizes are n, n + 1, ...
};
const Row rows[] = {
    {"cuMemcpy", "H2H", linear, 1},
    {"cuMemcpyAsync", "H2H", linear, 1},
    {"cuMemcpyHtoD_v2", "H2D", linear, 1},
    {"cuMemcpyHtoDAsync_v2", "H2D", linear, 1},
    {"cuMemcpyDtoH_v2", "D2H", linear, 1},
    {"cuMemcpyDtoHAsync_v2", "D2H", linear, 1},
    {"cuMemcpyDtoD_v2", "D2D", linear, 1},
    {"cuMemcpyDtoDAsync_v2", "D2D", linear, 1},
    {"cuMemcpyHtoA_v2", "H2D", to_array, 1},
    {"cuMemcpyHtoAAsync_v2", "H2D", to_array, 1},
    {"cuMemcpyAtoH_v2", "D2H", from_array, 1},
    {"cuMemcpyAtoHAsync_v2", "D2H", from_array, 1},
    {"cuMemcpyDtoA_v2", "D2D", to_array, 1},
    {"cuMemcpyAtoD_v2", "D2D", from_array, 1},
    {"cuMemcpyAtoA_v2", "D2D", between_arrays, 1},
    {"cuMemcpyPeer", "P2P", peer, 1},
    {"cuMemcpyPeerAsync", "P2P", peer, 1},
    {"cuMemcpy2D_v2", "H2D", structured<plane>, height},
    {"cuMemcpy2DUnaligned_v2", "H2D", structured<plane>, height},
    {"cuMemcpy2DAsync_v2", "H2D", structured<plane>, height},
    {"cuMemcpy3D_v2", "H2D", structured<volume>, height* depth},
    {"cuMemcpy3DAsync_v2", "H2D", structured<volume>, height* depth},
    {"cuMemcpy3DPeer", "P2P", structured<volume>, height* depth},
    {"cuMemcpy3DPeerAsync", "P2P", structured<volume>, height* depth},
    {"cuMemcpyBatchAsync", "H2H", batch, 1, elements},
    {"cuMemcpyBatchAsync_v2", "H2H", batch_v2, 1, elements},
    {"cuMemcpy3DBatchAsync", "H2H", volumes, height* depth, elements},
    {"cuMemcpy3DBatchAsync_v2", "H2H", volumes_v2, height* depth, elements},
    {"cuMemcpyWithAttributesAsync", "H2H", with_attributes, 1},
    {"cuMemcpy3DWithAttributesAsync", "H2H", volume_with_attributes, height* depth},
    {"cuMemsetD8_v2", "set", set, 1},
    {"cuMemsetD8Async", "set", set, 1},
    {"cuMemsetD16_v2", "set", set, 2},
    {"cuMemsetD16Async", "set", set, 2},
    {"cuMemsetD32_v2", "set", set, 4},
    {"cuMemsetD32Async", "set", set, 4},
    {"cuMemsetD2D8_v2", "set", set_plane, height},
    {"cuMemsetD2D8Async", "set", set_plane, height},
    {"cuMemsetD2D16_v2", "set", set_plane, 2 * height},
    {"cuMemsetD2D16Async", "set", set_plane, 2 * height},
    {"cuMemsetD2D32_v2", "set", set_plane, 4 * height},
    {"cuMemsetD2D32Async", "set", set_plane, 4 * height},
    {"cuMemPrefetchAsync", "prefetch", prefetch, 1},
    {"cuMemPrefetchAsync_v2", "prefetch", prefetch_v2, 1},
    {"cuMemPrefetchBatchAsync", "prefetch", prefetch_batch, 1, elements},
    {"cuMemDiscardAndPrefetchBatchAsync", "prefetch", prefetch_batch, 1, elements},
    {"cudaMemcpy", "H2D", linear_kind, 1},
    {"cudaMemcpyAsync", "H2D", linear_kind, 1},
    {"cudaMemcpyPeer", "P2P", peer, 1},
    {"cudaMemcpyPeerAsync", "P2P", peer, 1},
    {"cudaMemcpy2D", "H2D", plane_kind, height},
    {"cudaMemcpy2DAsync", "H2D", plane_kind, height},
    {"cudaMemcpy3D", "H2D", structured<runtime_volume>, height* depth},
    {"cudaMemcpy3DAsync", "H2D", structured<runtime_volume>, height* depth},
    {"cudaMemset", "set", set, 1},
    {"cudaMemsetAsync", "set", set, 1},
    {"cudaMemset2D", "set", set_plane, height},
    {"cudaMemset2DAsync", "set", set_plane, height},
};

} // namespace

void make_copies(void* library, unsigned count)
{
    Word size = 1009;
    for (const Row& row : rows) {
        for (const char* suffix : {"", "_ptds", "_ptsz"}) {
            const std::string name = std::string(row.name) + suffix;
            void* function = dlsym(library, name.c_str());
            if (!function)
                continue;
            int result = 0;
            for (unsigned i = 0; i < count; i++)
                result = row.make(function, size);
            const Word bytes = (row.copies * size + row.copies * (row.copies - 1) / 2) * row.times;
            printf(R"({"type":"copy","function":"%s","kind":"%s","count":%u,"copies":%lu,"bytes":%lu,"result":%d})"
                   "\n",
                   name.c_str(), row.direction, count, row.copies, bytes, result);
            count++;
            size += 10;
        }
    }
}
