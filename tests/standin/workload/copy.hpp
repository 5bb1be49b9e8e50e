// SPDX-License-Identifier: Apache-2.0
// Functions that copy, fill or prefetch: the arguments of a step, in every form that a function may take.
#pragma once

#include "../abi_memory.hpp"
#include "memory.hpp"

namespace workload {

struct Request {
    Memory to, from;
    size_t width = 0, height = 1, depth = 1; // width in bytes (fills: in elements); linear copies use only width
    int kind = 0;                            // cudaMemcpyKind
    standin::MemoryType to_type{}, from_type{};
    standin::Location location{};
    void* stream = nullptr;

    // The same request in the form of structures and arrays. The copies of a batch are contiguous.
    standin::Copy2D plane{};
    standin::Copy3D volume{};
    standin::RuntimeCopy3D runtime_volume{};
    standin::RuntimePeerCopy3D runtime_peer_volume{};
    std::vector<size_t> sizes;
    std::vector<void*> to_list, from_list;
    std::vector<standin::BatchCopy3D> operations;
};
void fill_structures(Request&);

// Source of a copy's direction: the function's name, its kind argument, the memory types in its structure, or only the
// memory at the addresses. peer, set and prefetch do not copy between host and device.
enum class DirectionFrom { name, kind, types, memory, peer, set, prefetch };
enum class Form { linear, plane, volume, batch, volumes };

struct CopyRow {
    const char* name; // without _ptds, _ptsz
    Form form;
    DirectionFrom direction_from;
    Side from, to; // sides that the function implies
    int (*call)(void* function, const Request&);
    const char* nested = ""; // the driver function of a runtime function; % is replaced by HtoD etc.
    size_t element = 1;      // bytes per element of fills
    int runtime = 0;         // major version of the only runtime with this layout; 0: all
};
const CopyRow* find_copy_row(const std::string& function);

} // namespace workload
