// SPDX-License-Identifier: Apache-2.0
// Functions that allocate, import or free memory, or create pools, arrays and similar objects: the arguments from the
// script, and a table of how to call each function.
#pragma once

#include "../abi_allocation.hpp"
#include "calls.hpp"
#include "memory.hpp"

namespace workload {

struct AllocRequest {
    void* address = nullptr; // output of the call; input if the call registers memory
    size_t bytes = 0;        // input; also output, if the driver allocates more bytes
    size_t width = 0, height = 0;
    standin::Array3DDescriptor array{};
    unsigned levels = 1;
    void* stream = nullptr;
    void* pool = nullptr;
    void* graph = nullptr;
    const void* unreadable = nullptr; // if set, passed to the call instead of a pointer to the properties
    standin::Location location = {standin::Location::device, 0};
    standin::Shared shared{}; // exported memory to import (IPC handle, pool pointer)
    int file = -1;            // file of exported memory to import; -1: none
    Memory source{};          // existing memory to export or map
};
using AllocCaller = int (*)(void* function, AllocRequest&);

enum class Source { none, ipc, pool_pointer, file, external, graph };

struct AllocRow {
    const char* name; // in scripts
    const char* kind; // kind of memory in copies; empty if copies do not support it
    standin::Holding holding;
    bool owned; // released with its context
    const char* free_by;
    AllocCaller call;
    const char* nested = ""; // the driver function that a runtime function calls
    Source source = Source::none;
    const char* symbol = nullptr; // the exported symbol, without _ptsz, if it is not `name`

    const char* function() const { return symbol ? symbol : name; }
};
const AllocRow* find_alloc_row(const std::string& function);

struct FreeRow {
    const char* name;
    const char* nested = "";
    int (*call)(void* function, void* address, void* stream) = nullptr; // null: pass the address and the stream
};
const FreeRow* find_free_row(const std::string& function);
int call_free(const FreeRow&, void* function, void* address, void* stream);

bool is_async(const std::string& function);
bool registers(const AllocRow&); // the function registers existing host memory
bool is_array(const AllocRow&);
bool is_physical(const AllocRow&); // allocates physical memory that `alloc` also maps
void* graph_for_memory();          // the graph that memory nodes are added to

Data data_of(standin::Holding, uint64_t bytes);

// Makes one call, and records it in the truth as an allocation or free of `data`. Returns 0 on success, else 1.
template<class F>
int record_call(const Pace& pace, const std::string& function, const std::string& kind, const Data& data, F make_call)
{
    Call call = call_of(function, kind);
    call.data = data;
    if (kind == "setup")
        call.device = -1;
    auto results = make_calls<Timed::yes>(pace, 1, make_call);
    add_results(call, results, pace);
    return results[0].count ? 0 : 1;
}

// mapping.cpp: physical memory.

// Memory freed by this thread's last cuMemRelease or cuMemUnmap.
std::vector<standin::Freed> freed_by_last_call();
// Records a cuMemRelease, with kind `free` only if it freed memory.
void add_release(Call, const Results&, const Pace&);
void add_implied(const std::vector<standin::Freed>&, const std::string& function);

void map_physical(Memory&); // reserves an address range and maps the memory there
void unmap_physical(const Memory&);
void free_addresses(const Memory&);

} // namespace workload
