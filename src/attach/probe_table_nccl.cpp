// SPDX-License-Identifier: Apache-2.0
// Probe table of NCCL 2.3 to 2.31 and of RCCL, which has the same functions (nccl.h). If the two spell a name
// differently, both spellings are listed. A version number after a row is the first version that has the function.
#include "attach/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr const char* all_reduce = "(_, _, bytes, int format, int reduction, handle, stream)";
constexpr const char* reduce = "(_, _, bytes, int format, int reduction, int root, handle, stream)";
// Layout of broadcast, gather and scatter.
constexpr const char* broadcast = "(_, _, bytes, int format, int root, handle, stream)";
constexpr const char* all_gather = "(_, _, bytes, int format, handle, stream)";
constexpr const char* in_place = "(_, bytes, int format, int root, handle, stream)";
constexpr const char* message_arguments = "(_, bytes, int format, _, handle, stream)";
constexpr const char* new_communicator = "(out)";

constexpr TableEntry nccl_table[] = {
    {"ncclAllReduce", KIND_COLLECTIVE, all_reduce},
    {"ncclReduce", KIND_COLLECTIVE, reduce},
    {"ncclBroadcast", KIND_COLLECTIVE, broadcast},
    {"ncclBcast", KIND_COLLECTIVE, in_place},
    {"ncclAllGather", KIND_COLLECTIVE, all_gather},
    {"ncclReduceScatter", KIND_COLLECTIVE, all_reduce},
    {"ncclAlltoAll", KIND_COLLECTIVE, all_gather}, // 2.28.3
    {"ncclGather", KIND_COLLECTIVE, broadcast},
    {"ncclScatter", KIND_COLLECTIVE, broadcast},
    // Variants since 2.31 whose last argument is a structure of options
    {"ncclAllReduceConfig", KIND_COLLECTIVE, all_reduce},
    {"ncclReduceConfig", KIND_COLLECTIVE, reduce},
    {"ncclBroadcastConfig", KIND_COLLECTIVE, broadcast},
    {"ncclAllGatherConfig", KIND_COLLECTIVE, all_gather},
    {"ncclReduceScatterConfig", KIND_COLLECTIVE, all_reduce},
    {"ncclAlltoAllConfig", KIND_COLLECTIVE, all_gather},
    {"ncclGatherConfig", KIND_COLLECTIVE, broadcast},
    {"ncclScatterConfig", KIND_COLLECTIVE, broadcast},
    // RCCL. The sizes of AllToAllv are in an array, which is not read.
    {"ncclAllToAll", KIND_COLLECTIVE, all_gather},
    {"ncclAllToAllv", KIND_COLLECTIVE, "(_, _, _, _, _, _, int format, handle, stream)"},
    {"ncclAllReduceWithBias", KIND_COLLECTIVE, all_reduce},

    {"ncclSend", KIND_MESSAGE, message_arguments},
    {"ncclRecv", KIND_MESSAGE, message_arguments},
    {"ncclPutSignal", KIND_MESSAGE, "(_, bytes, int format, _, _, _, _, _, _, handle, stream)"}, // 2.29.2
    {"ncclSignal", KIND_MESSAGE, "(_, _, _, _, handle, stream)"},
    {"ncclWaitSignal", KIND_MESSAGE, "(_, _, handle, stream)"},

    {"ncclGroupStart", KIND_GROUP_BEGIN, ""},
    {"ncclGroupEnd", KIND_GROUP_END, ""},
    {"ncclGroupSimulateEnd", KIND_GROUP_DROP, ""}, // 2.22.3

    {"ncclCommInitRank", KIND_COMM_NEW, new_communicator},
    {"ncclCommInitRankConfig", KIND_COMM_NEW, new_communicator},
    {"ncclCommInitRankScalable", KIND_COMM_NEW, new_communicator},
    {"ncclCommInitRankMulti", KIND_COMM_NEW, new_communicator}, // RCCL 5
    {"ncclCommInitAll", KIND_COMM_NEW, "(out, int count)"},
    {"ncclCommSplit", KIND_COMM_NEW, "(_, _, _, out)"},
    {"ncclCommShrink", KIND_COMM_NEW, "(_, _, _, out)"},
    {"ncclCommGrow", KIND_COMM_NEW, "(_, _, _, _, out)"},
    {"ncclCommDestroy", KIND_COMM_DESTROY, "(handle)"},
    {"ncclCommAbort", KIND_COMM_DESTROY, "(handle)"},
    // Only failures of these calls are reported.
    {"ncclCommGetAsyncError", KIND_COMM_QUERY, "(handle, out)"}, // 2.4.2
    {"ncclCommFinalize", KIND_COMM_QUERY, "(handle)"},           // 2.14.3
    {"ncclCommRevoke", KIND_COMM_QUERY, "(handle)"},             // 2.28.7
    {"ncclCommSuspend", KIND_COMM_QUERY, "(handle)"},            // 2.29.7
    {"ncclCommResume", KIND_COMM_QUERY, "(handle)"},             // 2.29.7
};

} // namespace

std::span<const TableEntry> nccl_entries()
{
    return nccl_table;
}

} // namespace gpusnoop
