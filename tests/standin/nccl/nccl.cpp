// SPDX-License-Identifier: Apache-2.0
// Stand-in for NCCL. It transfers no data: calls return at once, like the real ones, which only enqueue. Its functions
// call each other as the real functions do, and its communicators have the real layout, which tracers depend on.
#include "nccl.hpp"

#include <unistd.h>
#include <utility>

using namespace standin::nccl;

namespace {

thread_local int next_result = ok;
thread_local int split_rank, split_ranks;
thread_local unsigned next_block_ms = 0;
int devices_used = 0;

ncclResult_t result_of_call()
{
    return static_cast<Result>(std::exchange(next_result, ok));
}

// 64-bit FNV-1a.
uint64_t hash_of(const void* bytes, size_t size, uint64_t hash = 0xcbf29ce484222325)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
    return hash;
}

Comm* make(uint64_t hash, int rank, int ranks, int device)
{
    auto* comm = new Comm{};
    comm->start_magic = magic;
    comm->hash = hash;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = device;
    return comm;
}

// Common part of all operations.
ncclResult_t enqueue(ncclComm_t comm)
{
    if (const unsigned block_ms = std::exchange(next_block_ms, 0))
        usleep(block_ms * 1000);
    return comm && comm->start_magic == magic ? result_of_call() : invalid_argument;
}

#ifdef HIDDEN_FIELDS
// Reads the fields by offsets from memory, so that tracers cannot derive the offsets from the functions' code.
volatile size_t offsets[] = {offsetof(Comm, rank) / 4, offsetof(Comm, ranks) / 4, offsetof(Comm, device) / 4};
#define FIELD(comm, name, number) reinterpret_cast<const int*>(comm)[offsets[number]]
#else
#define FIELD(comm, name, number) (comm)->name
#endif

} // namespace

void standinNcclReturns(int result)
{
    next_result = result;
}

void standinNcclBlocks(unsigned milliseconds)
{
    next_block_ms = milliseconds;
}

void standinNcclFails(ncclComm_t comm, int error)
{
    comm->error = static_cast<Result>(error);
}

void standinNcclSplits(int rank, int ranks)
{
    split_rank = rank;
    split_ranks = ranks;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, Id id, int rank)
{
    *comm = make(hash_of(id.bytes, sizeof(id.bytes)), rank, ranks, devices_used++ % 8);
    return ok;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, Id id, int rank, void*)
{
    const Result result = result_of_call();
    *comm = result == ok ? make(hash_of(id.bytes, sizeof(id.bytes)), rank, ranks, devices_used++ % 8) : nullptr;
    return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* list)
{
    const uint64_t hash = hash_of(&comms, sizeof(comms));
    for (int i = 0; i < devices; i++)
        comms[i] = make(hash, i, devices, list ? list[i] : i);
    return ok;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t* made, void*)
{
    const int key[] = {color, comm->splits++};
    *made = color < 0 ? nullptr : make(hash_of(key, sizeof(key), comm->hash), split_rank, split_ranks, comm->device);
    return ok;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    comm->start_magic = 0;
    delete comm;
    return ok;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->start_magic = 0;
    delete comm;
    return ok;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error)
{
    if (!comm)
        return invalid_argument;
    *error = comm->error;
    return ok;
}

#define QUERY(name, field, number)                                                                                     \
    NCCL_API ncclResult_t name(ncclComm_t comm, int* out)                                                              \
    {                                                                                                                  \
        if (!comm || comm->start_magic != magic)                                                                       \
            return invalid_argument;                                                                                   \
        *out = FIELD(comm, field, number);                                                                             \
        return ok;                                                                                                     \
    }
QUERY(ncclCommUserRank, rank, 0)
QUERY(ncclCommCount, ranks, 1)
QUERY(ncclCommCuDevice, device, 2)

NCCL_API ncclResult_t ncclGetVersion(int* version)
{
    *version = VERSION;
    return ok;
}

ncclResult_t ncclGroupStart()
{
    return ok;
}

ncclResult_t ncclGroupEnd()
{
    return result_of_call();
}

ncclResult_t ncclGroupSimulateEnd(void*)
{
    return ok;
}

// The parameters before the communicator.
#define OPERATION(name, ...)                                                                                           \
    ncclResult_t name(__VA_ARGS__, ncclComm_t comm, CUstream_st*)                                                      \
    {                                                                                                                  \
        return enqueue(comm);                                                                                          \
    }
OPERATION(ncclAllReduce, const void*, void*, size_t, int, int)
OPERATION(ncclReduce, const void*, void*, size_t, int, int, int)
OPERATION(ncclBroadcast, const void*, void*, size_t, int, int)
OPERATION(ncclAllGather, const void*, void*, size_t, int)
OPERATION(ncclReduceScatter, const void*, void*, size_t, int, int)
OPERATION(ncclAlltoAll, const void*, void*, size_t, int)
OPERATION(ncclGather, const void*, void*, size_t, int, int)
OPERATION(ncclScatter, const void*, void*, size_t, int, int)
OPERATION(ncclSend, const void*, size_t, int, int)
OPERATION(ncclRecv, void*, size_t, int, int)

// Calls ncclBroadcast, as in NCCL 2.3 to 2.29.
ncclResult_t ncclBcast(void* buffer, size_t count, int type, int root, ncclComm_t comm, CUstream_st* stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

// Exists in RCCL only.
ncclResult_t ncclAllToAll(const void* from, void* to, size_t count, int type, ncclComm_t comm, CUstream_st* stream)
{
    ncclGroupStart();
    for (int peer = 0; peer < comm->ranks; peer++) {
        ncclSend(from, count, type, peer, comm, stream);
        ncclRecv(to, count, type, peer, comm, stream);
    }
    return ncclGroupEnd();
}
