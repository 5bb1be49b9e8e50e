// SPDX-License-Identifier: Apache-2.0
// Functions that allocate, import, or make what memory comes from, and those that free it: what a script asks of one,
// and the rows that say how to call it.
#pragma once

#include "../abi_allocation.hpp"
#include "calls.hpp"
#include "memory.hpp"

namespace workload {

struct Wanted {
    void* address = nullptr; // out; in, where it is to be registered
    size_t bytes = 0;        // in, and out where the driver takes more than it is asked for
    size_t width = 0, height = 0;
    standin::Array3DDescriptor array{};
    unsigned levels = 1;
    void* stream = nullptr;
    void* pool = nullptr;
    void* graph = nullptr;
    const void* unreadable = nullptr; // goes in the place of the properties
    standin::Location location = {standin::Location::device, 0};
    standin::Shared shared{}; // what another process would have sent; or as a file:
    int file = -1;
    Memory source{}; // what is exported, or mapped
};
using AllocCaller = int (*)(void* function, Wanted&);

enum class Source { none, ipc, pool_pointer, file, external, graph };

struct AllocRow {
    const char* name;     // in scripts
    const char* function; // the exported symbol, without _ptsz
    const char* what;     // as a side of copies; empty: it is none
    standin::Holding holding;
    bool owned; // goes with its context
    const char* free_by;
    AllocCaller call;
    const char* nested = ""; // the driver function that a runtime function reaches
    Source source = Source::none;
};
const AllocRow* find_alloc_row(const std::string& function);

struct FreeRow {
    const char* name;
    const char* nested = "";
    int (*call)(void* function, void* address, void* stream) = nullptr; // unless these two are its arguments
};
const FreeRow* find_free_row(const std::string& function);
int call_free(const FreeRow&, void* function, void* address, void* stream);

bool is_async(const std::string& function);
bool registers(const AllocRow&); // memory of the host, that is there already
bool is_array(const AllocRow&);
bool is_physical(const AllocRow&); // and is to be mapped
void* graph_for_memory();          // the one that nodes for memory are added to

Data data_of(standin::Holding, uint64_t bytes);

// One call, of which the truth says that it is an allocation or a free of this. Its result.
template<class F>
int tell(const Pace& pace, const std::string& function, const std::string& kind, const Data& data, F made)
{
    Call call = call_of(function, kind);
    call.data = data;
    if (kind == "setup")
        call.device = -1;
    auto results = make_calls<Timed::yes>(pace, 1, made);
    add_results(call, results, pace);
    return results[0].count ? 0 : 1;
}

// mapping.cpp: physical memory.

// A cuMemRelease or a cuMemUnmap was just made: what went with it.
std::vector<standin::Freed> freed_by_last_call();
// Where cuMemRelease frees nothing, it is no free.
void add_release(Call, const Results&, const Pace&);
void add_implied(const std::vector<standin::Freed>&, const std::string& function);

void map_physical(Memory&); // gives it an address
void unmap_physical(const Memory&);
void free_addresses(const Memory&);

} // namespace workload
