// SPDX-License-Identifier: Apache-2.0
// Which calls the programs of the kernel side are for, by kind. A tool hooks the programs whose counts it shows.
#pragma once

#include "probes.hpp"

namespace gpusnoop {

// launch.bpf.h
inline constexpr probe_kind launch_kinds[] = {KIND_LAUNCH, KIND_LAUNCH_LIST, KIND_LAUNCH_LEGACY, KIND_GRAPH_LAUNCH,
                                              KIND_HOST_FUNC};

// copy.bpf.h: one copy, and many at once
inline constexpr probe_kind copy_kinds[] = {KIND_COPY};
inline constexpr probe_kind batch_kinds[] = {KIND_COPY_BATCH, KIND_COPY_BATCH_3D};

// wait.bpf.h: waits, and what may be one
inline constexpr probe_kind wait_kinds[] = {KIND_WAIT, KIND_COPY, KIND_FREE};
bool waits(const probe_row& row);

// allocation.bpf.h
inline constexpr probe_kind alloc_kinds[] = {KIND_ALLOC, KIND_REGISTER_HOST, KIND_PHYSICAL_NEW, KIND_MAP, KIND_TRIM};
inline constexpr probe_kind free_kinds[] = {KIND_FREE};
inline constexpr probe_kind handle_kinds[] = {KIND_PHYSICAL_FREE, KIND_PHYSICAL_HOLD, KIND_UNMAP};
inline constexpr probe_kind gone_kinds[] = {KIND_MEMORY_GONE, KIND_CONTEXT_LET_GO};

// memory.bpf.h: where addresses lead to
inline constexpr probe_kind memory_kinds[] = {KIND_ALLOC,        KIND_REGISTER_HOST, KIND_FREE,
                                              KIND_PHYSICAL_NEW, KIND_PHYSICAL_FREE, KIND_MAP,
                                              KIND_UNMAP,        KIND_MEMORY_GONE,   KIND_INIT};
bool tells_memory(const probe_row& row);

// state.bpf.h: names of kernels, captures, the device that a thread works on; and what needs no result
inline constexpr probe_kind lookup_kinds[] = {KIND_GET_FUNCTION, KIND_GET_ALIAS};
inline constexpr probe_kind capture_kinds[] = {KIND_CAPTURE_BEGIN, KIND_CAPTURE_END};
inline constexpr probe_kind device_kinds[] = {KIND_CONTEXT_NEW,  KIND_CONTEXT_CREATE, KIND_CONTEXT_SET,
                                              KIND_CONTEXT_PUSH, KIND_CONTEXT_POP,    KIND_DEVICE_SET};
inline constexpr probe_kind note_kinds[] = {KIND_SHAPE, KIND_REGISTER};

// graph_state.bpf.h: what a launch of a graph stands for, with captures
inline constexpr probe_kind graph_kinds[] = {KIND_GRAPH_NEW,         KIND_GRAPH_NODE,   KIND_GRAPH_GONE,
                                             KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPDATE, KIND_EXEC_GONE};
inline constexpr probe_kind event_kinds[] = {KIND_EVENT_RECORD, KIND_EVENT_WAIT};

// Appends the rows of these kinds.
void append_probes(std::vector<Probe>& to, Library library, std::span<const probe_kind> kinds);

// The indices of the rows that have one of these kinds.
std::vector<unsigned> probes_of(std::span<const Probe> probes, std::span<const probe_kind> kinds);

} // namespace gpusnoop
