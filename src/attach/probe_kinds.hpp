// SPDX-License-Identifier: Apache-2.0
// Which calls the programs of the kernel side are for. A tool attaches the programs whose counts it shows.
#pragma once

#include "attach/probes.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace gpusnoop {

// Rows of the probe table, by kind.
struct CallSet {
    uint64_t kinds = 0;                       // a bit each
    bool (*only)(const probe_row&) = nullptr; // which of these kinds; null: all

    bool has_kind(int kind) const { return kinds >> kind & 1; }
    bool has(const probe_row& row) const { return has_kind(row.kind) && (!only || only(row)); }
};
static_assert(KINDS <= 64);

consteval CallSet calls_of(std::initializer_list<probe_kind> kinds, bool (*only)(const probe_row&) = nullptr)
{
    CallSet set{0, only};
    for (const probe_kind kind : kinds)
        set.kinds |= uint64_t{1} << kind;
    return set;
}

// By which the kernel side knows the first that is one of these; 0: none is.
inline uint32_t row_number(std::span<const Probe> probes, const CallSet& calls)
{
    const auto found = std::ranges::find_if(probes, [&](const Probe& probe) { return calls.has(probe.row); });
    return found == probes.end() ? 0 : static_cast<uint32_t>(found - probes.begin()) + 1;
}

// launch.bpf.h
inline constexpr CallSet launch_calls =
    calls_of({KIND_LAUNCH, KIND_LAUNCH_LEGACY, KIND_LAUNCH_LIST, KIND_LAUNCH_ITEMS, KIND_GRAPH_LAUNCH, KIND_HOST_FUNC});

// Those that a program of their own is for, which knows the row: one of the functions of a kind.
constexpr bool is_often(const probe_row& row)
{
    return row.often && !row.per_thread_stream;
}
inline constexpr CallSet often_launched = calls_of({KIND_LAUNCH}, is_often);
inline constexpr CallSet often_launched_graphs = calls_of({KIND_GRAPH_LAUNCH}, is_often);
inline constexpr std::string_view slower_launches = "it takes longer to count launches";

// copy.bpf.h: one copy, and many at once
inline constexpr CallSet copy_calls = calls_of({KIND_COPY});
inline constexpr CallSet batch_calls = calls_of({KIND_COPY_BATCH, KIND_COPY_BATCH_3D});

// wait.bpf.h. Sets are called synchronous and return before they are done; they wait for nothing.
constexpr bool waits(const probe_row& row)
{
    if (row.kind == KIND_COPY)
        return !row.asynchronous && row.direction != DIRECTION_SET;
    return row.kind == KIND_WAIT || (row.kind == KIND_FREE && row.wait == WAIT_FREE && !row.asynchronous);
}
inline constexpr CallSet wait_calls = calls_of({KIND_WAIT, KIND_COPY, KIND_FREE}, waits);

// allocation.bpf.h
inline constexpr CallSet alloc_calls =
    calls_of({KIND_ALLOC, KIND_REGISTER_HOST, KIND_PHYSICAL_NEW, KIND_MAP, KIND_TRIM});
inline constexpr CallSet free_calls = calls_of({KIND_FREE});
inline constexpr CallSet handle_calls = calls_of({KIND_PHYSICAL_FREE, KIND_PHYSICAL_HOLD, KIND_UNMAP});

// memory.bpf.h: where addresses lead to. Not those of objects and addresses that nothing is copied to or from.
constexpr bool changes_memory(const probe_row& row)
{
    return (row.kind != KIND_ALLOC && row.kind != KIND_FREE) || row.memory != MEMORY_UNKNOWN;
}
inline constexpr CallSet memory_calls =
    calls_of({KIND_ALLOC, KIND_REGISTER_HOST, KIND_FREE, KIND_PHYSICAL_NEW, KIND_PHYSICAL_FREE, KIND_MAP, KIND_UNMAP,
              KIND_MEMORY_GONE, KIND_INIT},
             changes_memory);

// state.bpf.h: names of kernels, captures, the device that a thread works on; and what needs no result
inline constexpr CallSet lookup_calls = calls_of({KIND_GET_FUNCTION, KIND_GET_ALIAS});
inline constexpr CallSet capture_calls = calls_of({KIND_CAPTURE_BEGIN, KIND_CAPTURE_END});
inline constexpr CallSet device_calls = calls_of(
    {KIND_CONTEXT_NEW, KIND_CONTEXT_CREATE, KIND_CONTEXT_SET, KIND_CONTEXT_PUSH, KIND_CONTEXT_POP, KIND_DEVICE_SET});
inline constexpr CallSet note_calls = calls_of({KIND_SHAPE, KIND_REGISTER});

// life.bpf.h: streams, where captures are followed; contexts, in tools that follow no memory
inline constexpr CallSet stream_calls = calls_of({KIND_STREAM_NEW, KIND_STREAM_GONE});
inline constexpr CallSet context_ends = calls_of({KIND_MEMORY_GONE, KIND_CONTEXT_LET_GO});
inline constexpr std::string_view stale_streams =
    "launches count as captured if their stream has the handle of a capturing "
    "one that was destroyed";
inline constexpr std::string_view stale_devices = "devices are wrong once a context is destroyed";

// graph_state.bpf.h: what a launch of a graph stands for, with captures
inline constexpr CallSet graph_calls = calls_of(
    {KIND_GRAPH_NEW, KIND_GRAPH_NODE, KIND_GRAPH_GONE, KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPDATE, KIND_EXEC_GONE});
inline constexpr CallSet event_calls = calls_of({KIND_EVENT_RECORD, KIND_EVENT_WAIT, KIND_EVENT_GONE});

// collective.bpf.h
inline constexpr CallSet nccl_calls = calls_of({KIND_COLLECTIVE, KIND_MESSAGE, KIND_GROUP_BEGIN, KIND_GROUP_END,
                                                KIND_GROUP_DROP, KIND_COMM_NEW, KIND_COMM_GONE, KIND_COMM_ASKED});

// ... and what returns when work is done.
constexpr bool waits_for_work(const probe_row& row)
{
    return row.wait == WAIT_STREAM || row.wait == WAIT_CONTEXT || row.wait == WAIT_EVENT;
}
inline constexpr CallSet work_waits = calls_of({KIND_WAIT}, waits_for_work);

} // namespace gpusnoop
