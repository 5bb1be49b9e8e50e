// SPDX-License-Identifier: Apache-2.0
// Probe table: every API function that a tool may probe, and the locations of its arguments. The locations follow from
// cuda.h and cuda_runtime_api.h (11.2 to 13.0) and are checked against compiled calls (tests/unit/attach/abi).
#pragma once

#include "bpf/shared/probe.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

enum class Library : uint8_t {
    driver,  // libcuda.so*
    runtime, // libcudart*.so*, or a file that contains the static runtime
    nccl,    // libnccl.so*, librccl.so*, or a file that contains one of them
    hip,     // libamdhip64.so*: AMD's driver and runtime in one
};

// Runtime versions to which a row applies. Rows of the driver apply to all versions, because the ABI of a driver symbol
// never changes.
enum Runtime : uint8_t {
    any_runtime = 0,
    cudart11 = 1,
    cudart12 = 2,
    cudart13 = 4,
    hip52 = 8, // HIP 5.0 to 5.2
    hip5 = 16, // HIP 5.3 and later 5.x
    hip6 = 32, // HIP 6 and 7
};

struct Probe {
    std::string symbol;
    Library library = Library::driver;
    uint8_t runtimes = any_runtime; // bits of Runtime: versions to which the row applies
    probe_row row{};
};

// Returns the library of a LAYER_x constant. NCCL has no layer of its own: its calls have LAYER_DRIVER, for which this
// returns Library::driver.
Library library_of(uint8_t layer);

// Returns all probes of these kinds in one library. Each per-thread variant (_ptsz) has its own probe.
std::vector<Probe> probes(Library library, std::span<const probe_kind> kinds);

// Returns one string per probe: its symbol if the function waits and its layer is counted, else an empty string.
// driver, runtime: whether these layers are counted. HIP's layer is always counted.
std::vector<std::string_view> symbols_of_waits(std::span<const Probe> probes, bool driver, bool runtime);

// Returns the runtime version for a soname: "libcudart.so.12" -> cudart12, "libamdhip64.so.7" -> hip6. Returns
// any_runtime if the soname has no version, as for a static runtime; then only rows of the probe table that apply to
// all versions are used.
Runtime runtime_of(std::string_view soname);
bool applies(const Probe& probe, Runtime runtime);

// "CUDA_ERROR_INVALID_VALUE" for a CUresult, "cudaErrorInvalidValue" for a cudaError_t, "ncclInvalidArgument" for a
// ncclResult_t, "hipErrorInvalidValue" for a hipError_t, "error N" if unknown.
std::string result_name(Library library, int result);

// Call sets: the calls that each group of BPF programs handles.

// Set of rows of the probe table.
struct CallSet {
    uint64_t kinds = 0;                       // one bit per probe_kind
    bool (*only)(const probe_row&) = nullptr; // selects rows of these kinds; null selects all

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

// Returns the number by which BPF programs identify the first probe that is in the call set; 0 if there is none.
inline uint32_t row_number(std::span<const Probe> probes, const CallSet& calls)
{
    const auto found = std::ranges::find_if(probes, [&](const Probe& probe) { return calls.has(probe.row); });
    return found == probes.end() ? 0 : static_cast<uint32_t>(found - probes.begin()) + 1;
}

// Handled by launch.bpf.h.
inline constexpr CallSet launch_calls =
    calls_of({KIND_LAUNCH, KIND_LAUNCH_LEGACY, KIND_LAUNCH_LIST, KIND_LAUNCH_ITEMS, KIND_GRAPH_LAUNCH, KIND_HOST_FUNC});

// True for the most frequently called function of each kind. Such a function may have its own BPF program. That program
// is faster, because the function's row_number() is a constant in it.
constexpr bool is_often(const probe_row& row)
{
    return row.often && !row.per_thread_stream;
}
inline constexpr CallSet often_launched = calls_of({KIND_LAUNCH}, is_often);
inline constexpr CallSet often_launched_graphs = calls_of({KIND_GRAPH_LAUNCH}, is_often);
inline constexpr std::string_view slower_launches = "counting a launch takes more CPU time";

// Handled by copy.bpf.h: single copies and batches.
inline constexpr CallSet copy_calls = calls_of({KIND_COPY});
inline constexpr CallSet batch_calls = calls_of({KIND_COPY_BATCH, KIND_COPY_BATCH_3D});

// Handled by wait.bpf.h. Synchronous memsets are left out, because they return before the device is done.
constexpr bool blocks_host(const probe_row& row)
{
    if (row.kind == KIND_COPY)
        return !row.asynchronous && row.direction != DIRECTION_SET;
    return row.kind == KIND_WAIT || (row.kind == KIND_FREE && row.wait == WAIT_FREE && !row.asynchronous);
}
inline constexpr CallSet wait_calls = calls_of({KIND_WAIT, KIND_COPY, KIND_FREE}, blocks_host);

// Handled by memory.bpf.h.
inline constexpr CallSet alloc_calls =
    calls_of({KIND_ALLOC, KIND_REGISTER_HOST, KIND_PHYSICAL_NEW, KIND_MAP, KIND_TRIM});
inline constexpr CallSet free_calls = calls_of({KIND_FREE});
inline constexpr CallSet handle_calls = calls_of({KIND_PHYSICAL_FREE, KIND_PHYSICAL_RETAIN, KIND_UNMAP});

// Calls that address.bpf.h handles to track the memory type of addresses. Excludes allocations without a memory type,
// such as arrays, pools and reserved addresses.
constexpr bool changes_memory(const probe_row& row)
{
    return (row.kind != KIND_ALLOC && row.kind != KIND_FREE) || row.memory != MEMORY_UNKNOWN;
}
inline constexpr CallSet memory_calls =
    calls_of({KIND_ALLOC, KIND_REGISTER_HOST, KIND_FREE, KIND_PHYSICAL_NEW, KIND_PHYSICAL_FREE, KIND_MAP, KIND_UNMAP,
              KIND_CONTEXT_DESTROY, KIND_INIT},
             changes_memory);

// Calls that context.bpf.h handles to track kernel names, captures, and the current device of each thread. The calls in
// note_calls need no return probe.
inline constexpr CallSet lookup_calls = calls_of({KIND_GET_FUNCTION, KIND_GET_ALIAS});
inline constexpr CallSet capture_calls = calls_of({KIND_CAPTURE_BEGIN, KIND_CAPTURE_END});
inline constexpr CallSet device_calls = calls_of(
    {KIND_CONTEXT_NEW, KIND_CONTEXT_CREATE, KIND_CONTEXT_SET, KIND_CONTEXT_PUSH, KIND_CONTEXT_POP, KIND_DEVICE_SET});
inline constexpr CallSet note_calls = calls_of({KIND_SHAPE, KIND_REGISTER});

// context.bpf.h handles stream_calls in tools that track captures, and context_ends in tools that do not track memory.
// In tools that track memory, holding.bpf.h handles context_ends.
inline constexpr CallSet stream_calls = calls_of({KIND_STREAM_NEW, KIND_STREAM_DESTROY});
inline constexpr CallSet context_ends = calls_of({KIND_CONTEXT_DESTROY, KIND_CONTEXT_RELEASE});
inline constexpr std::string_view stale_streams =
    "launches count as captured if their stream reuses the handle of a stream that was destroyed "
    "during a capture";
inline constexpr std::string_view stale_devices = "calls may show the wrong device after a context is destroyed";

// Calls that graph.bpf.h handles to track the contents of graphs, including captured graphs.
inline constexpr CallSet graph_calls = calls_of({KIND_GRAPH_NEW, KIND_GRAPH_NODE, KIND_GRAPH_DESTROY,
                                                 KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPDATE, KIND_EXEC_DESTROY});
inline constexpr CallSet event_calls = calls_of({KIND_EVENT_RECORD, KIND_EVENT_WAIT, KIND_EVENT_DESTROY});

// NCCL calls that nccl.bpf.h handles.
inline constexpr CallSet nccl_calls = calls_of({KIND_COLLECTIVE, KIND_MESSAGE, KIND_GROUP_BEGIN, KIND_GROUP_END,
                                                KIND_GROUP_DROP, KIND_COMM_NEW, KIND_COMM_DESTROY, KIND_COMM_QUERY});

// True for waits until the device has finished the work of a stream, a context or an event. nccl.bpf.h handles only
// these waits.
constexpr bool waits_for_work(const probe_row& row)
{
    return row.wait == WAIT_STREAM || row.wait == WAIT_CONTEXT || row.wait == WAIT_EVENT;
}
inline constexpr CallSet work_waits = calls_of({KIND_WAIT}, waits_for_work);

} // namespace gpusnoop
