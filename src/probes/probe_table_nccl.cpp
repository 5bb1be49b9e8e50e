// SPDX-License-Identifier: Apache-2.0
// NCCL 2.3 to 2.31, and RCCL, which has its functions: nccl.h. Where both spell one differently, both are here.
#include "probes/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr const char* all_reduce = "bytes:rdx format:rcx.l reduction:r8.l handle:r9 stream:s0";
constexpr const char* reduce = "bytes:rdx format:rcx.l reduction:r8.l root:r9.l handle:s0 stream:s1";
constexpr const char* broadcast = "bytes:rdx format:rcx.l root:r8.l handle:r9 stream:s0"; // and what has a root as well
constexpr const char* all_gather = "bytes:rdx format:rcx.l handle:r8 stream:r9";
constexpr const char* in_place = "bytes:rsi format:rdx.l root:rcx.l handle:r8 stream:r9";
constexpr const char* message = "bytes:rsi format:rdx.l handle:r8 stream:r9";
constexpr const char* made = "out:rdi";

constexpr TableEntry table[] = {
    {"ncclAllReduce", KIND_COLLECTIVE, all_reduce},
    {"ncclReduce", KIND_COLLECTIVE, reduce},
    {"ncclBroadcast", KIND_COLLECTIVE, broadcast},
    {"ncclBcast", KIND_COLLECTIVE, in_place},
    {"ncclAllGather", KIND_COLLECTIVE, all_gather},
    {"ncclReduceScatter", KIND_COLLECTIVE, all_reduce},
    {"ncclAlltoAll", KIND_COLLECTIVE, all_gather}, // 2.28.3
    {"ncclGather", KIND_COLLECTIVE, broadcast},
    {"ncclScatter", KIND_COLLECTIVE, broadcast},
    // The same with a structure of options behind the others: 2.31
    {"ncclAllReduceConfig", KIND_COLLECTIVE, all_reduce},
    {"ncclReduceConfig", KIND_COLLECTIVE, reduce},
    {"ncclBroadcastConfig", KIND_COLLECTIVE, broadcast},
    {"ncclAllGatherConfig", KIND_COLLECTIVE, all_gather},
    {"ncclReduceScatterConfig", KIND_COLLECTIVE, all_reduce},
    {"ncclAlltoAllConfig", KIND_COLLECTIVE, all_gather},
    {"ncclGatherConfig", KIND_COLLECTIVE, broadcast},
    {"ncclScatterConfig", KIND_COLLECTIVE, broadcast},
    // RCCL. How much AllToAllv sends is in an array.
    {"ncclAllToAll", KIND_COLLECTIVE, all_gather},
    {"ncclAllToAllv", KIND_COLLECTIVE, "format:s0.l handle:s1 stream:s2"},
    {"ncclAllReduceWithBias", KIND_COLLECTIVE, all_reduce},

    {"ncclSend", KIND_MESSAGE, message},
    {"ncclRecv", KIND_MESSAGE, message},
    {"ncclPutSignal", KIND_MESSAGE, "bytes:rsi format:rdx.l handle:s3 stream:s4"}, // 2.29.2
    {"ncclSignal", KIND_MESSAGE, "handle:r8 stream:r9"},
    {"ncclWaitSignal", KIND_MESSAGE, "handle:rdx stream:rcx"},

    {"ncclGroupStart", KIND_GROUP_BEGIN, ""},
    {"ncclGroupEnd", KIND_GROUP_END, ""},
    {"ncclGroupSimulateEnd", KIND_GROUP_DROP, ""}, // 2.22.3

    // An id by value is on the stack.
    {"ncclCommInitRank", KIND_COMM_NEW, made},
    {"ncclCommInitRankConfig", KIND_COMM_NEW, made},
    {"ncclCommInitRankScalable", KIND_COMM_NEW, made},
    {"ncclCommInitRankMulti", KIND_COMM_NEW, made}, // RCCL 5
    {"ncclCommInitAll", KIND_COMM_NEW, "out:rdi count:rsi.l"},
    {"ncclCommSplit", KIND_COMM_NEW, "out:rcx"},
    {"ncclCommShrink", KIND_COMM_NEW, "out:rcx"},
    {"ncclCommGrow", KIND_COMM_NEW, "out:r8"},
    {"ncclCommDestroy", KIND_COMM_GONE, "handle:rdi"},
    {"ncclCommAbort", KIND_COMM_GONE, "handle:rdi"},
    // Of which only failures are told.
    {"ncclCommGetAsyncError", KIND_COMM_ASKED, "handle:rdi out:rsi"}, // 2.4.2
    {"ncclCommFinalize", KIND_COMM_ASKED, "handle:rdi"},              // 2.14.3
    {"ncclCommRevoke", KIND_COMM_ASKED, "handle:rdi"},                // 2.28.7
    {"ncclCommSuspend", KIND_COMM_ASKED, "handle:rdi"},               // 2.29.7
    {"ncclCommResume", KIND_COMM_ASKED, "handle:rdi"},                // 2.29.7
};

} // namespace

std::span<const TableEntry> nccl_entries()
{
    return table;
}

} // namespace gpusnoop
