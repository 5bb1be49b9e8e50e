// SPDX-License-Identifier: Apache-2.0
// Functions that copy, fill or prefetch: what a script asks of one, in every shape that one can want it in.
#pragma once

#include "../abi_memory.hpp"
#include "memory.hpp"

namespace workload {

struct Request {
    Memory to, from;
    size_t width = 0, height = 1, depth = 1; // in bytes, for fills in elements; what is linear has all in its width
    int kind = 0;                            // cudaMemcpyKind
    standin::MemoryType to_type{}, from_type{};
    standin::Location location{};
    void* stream = nullptr;

    // The same as structures and arrays. Elements of a batch follow each other.
    standin::Copy2D plane{};
    standin::Copy3D volume{};
    standin::RuntimeCopy3D runtime_volume{};
    standin::RuntimePeerCopy3D runtime_peer_volume{};
    std::vector<size_t> sizes;
    std::vector<void*> to_list, from_list;
    std::vector<standin::BatchCopy3D> operations;
    const void* unreadable = nullptr; // goes in their place

    template<class T>
    const T* readable(const T* p) const
    {
        return unreadable ? static_cast<const T*>(unreadable) : p;
    }
};
void fill_structures(Request&);

// What says the direction of a copy: the function's name, its kind argument, the types in its structure, nothing but
// the memory itself. Or the call is no copy between two sides at all.
enum class Told { name, kind, types, memory, peer, set, prefetch };
enum class Form { linear, plane, volume, batch, volumes };

struct CopyRow {
    const char* name; // without _ptds, _ptsz
    Form form;
    Told told;
    Side from, to; // that the function insists on
    int (*call)(void* function, const Request&);
    const char* nested = ""; // the driver function that a runtime function reaches; % stands for HtoD and the like
    size_t element = 1;      // bytes, of fills
    int runtime = 0;         // the only one with this layout
};
const CopyRow* find_copy_row(const std::string& function);

} // namespace workload
