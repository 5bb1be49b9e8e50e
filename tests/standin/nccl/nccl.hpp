// SPDX-License-Identifier: Apache-2.0
// The part of NCCL's API that the stand-in implements, and the communicator structure, whose fields are in the order of
// NCCL 2.22.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace standin::nccl {

enum Result : int { ok = 0, invalid_argument = 4, in_progress = 7 };

struct Id {
    char bytes[128];
};

constexpr uint64_t magic = 0x0280028002800280;

struct Comm {
    uint64_t start_magic;
    std::array<char, 0x34238> channels; // placeholder for all fields before `id`
    uint64_t id;                        // first 8 bytes of the communicator's id
    uint64_t hash;
    int rank, ranks, device, nvml_device;
    uint64_t compute_capability[2];
    int64_t bus_id;
    int splits;
    Result error; // asynchronous error
};
static_assert(offsetof(Comm, rank) == 0x34250);

} // namespace standin::nccl

#define NCCL_API extern "C" __attribute__((visibility("default")))

using ncclComm_t = standin::nccl::Comm*;
using ncclResult_t = standin::nccl::Result;

NCCL_API ncclResult_t ncclCommInitRank(ncclComm_t*, int ranks, standin::nccl::Id, int rank);
NCCL_API ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int ranks, standin::nccl::Id, int rank, void* config);
NCCL_API ncclResult_t ncclCommInitAll(ncclComm_t*, int devices, const int* list);
NCCL_API ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t*, void* config);
NCCL_API ncclResult_t ncclCommDestroy(ncclComm_t);
NCCL_API ncclResult_t ncclCommAbort(ncclComm_t);
NCCL_API ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error);
NCCL_API ncclResult_t ncclGroupStart();
NCCL_API ncclResult_t ncclGroupEnd();
NCCL_API ncclResult_t ncclGroupSimulateEnd(void*);
NCCL_API ncclResult_t ncclAllReduce(const void*, void*, size_t, int type, int op, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclReduce(const void*, void*, size_t, int type, int op, int root, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclBroadcast(const void*, void*, size_t, int type, int root, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclBcast(void*, size_t, int type, int root, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclAllGather(const void*, void*, size_t, int type, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclReduceScatter(const void*, void*, size_t, int type, int op, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclAlltoAll(const void*, void*, size_t, int type, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclAllToAll(const void*, void*, size_t, int type, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclGather(const void*, void*, size_t, int type, int root, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclScatter(const void*, void*, size_t, int type, int root, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclSend(const void*, size_t, int type, int peer, ncclComm_t, CUstream_st*);
NCCL_API ncclResult_t ncclRecv(void*, size_t, int type, int peer, ncclComm_t, CUstream_st*);

// For tests: sets the result of the next call that uses or creates a communicator, or ends a group.
NCCL_API void standinNcclReturns(int result);
// Delays the next call that uses a communicator.
NCCL_API void standinNcclBlocks(unsigned milliseconds);
// Sets a communicator's asynchronous error.
NCCL_API void standinNcclFails(ncclComm_t, int error);
// Sets the rank and number of ranks of the communicator that the next split creates. The real NCCL negotiates them with
// the other ranks.
NCCL_API void standinNcclSplits(int rank, int ranks);
