// SPDX-License-Identifier: Apache-2.0
// Where API functions come from: the driver's always by name from a library opened at run time, so that one source
// serves every form; the runtime's from whatever this form is linked with.
#pragma once

#include "../abi_allocation.hpp"
#include "../abi_graph.hpp"
#include "truth.hpp"

#include <string>
#include <utility>

namespace workload {

// Opens the driver library, once; later calls do nothing. Null symbols mean that the library has no such function.
void open_driver(const std::string& path = "libcuda.so.1");
void* driver_symbol(const std::string& name);

// The driver has nothing of the stand-in's own: it is NVIDIA's, or the stand-in poses as that (WORKLOAD_DEVICE is set).
bool on_device();
void* runtime_symbol(const std::string& name);
void* symbol(const std::string& name); // by prefix: cu... or cuda...; must exist

// The driver's own counters by standin::Class; false if no stand-in driver is open. Opens nothing.
bool driver_counters(uint64_t* counts, int n);

// The same of what this process holds, by standin::Holding; and for a child, that none of it is its own.
bool driver_holdings(standin::HoldingTally* held, standin::HoldingTally* released, uint64_t* peak);
void forget_driver_holdings();

// What the stand-in driver says of streams and graphs without an API call; nothing where it is not open.
bool driver_is_capturing(void* stream);
uint64_t driver_generation(void* graph_or_exec, bool is_exec);
uint64_t driver_kernels(void* exec); // that a launch starts
std::vector<standin::GraphRecord> driver_graphs();
void forget_driver_graphs();

template<class... Arguments>
int call_symbol(void* function, Arguments... arguments)
{
    return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// A call that prepares something, by name; it is part of the truth as "setup".
int add_setup(const std::string& name, int result);
template<class... Arguments>
int setup(const std::string& name, Arguments... arguments)
{
    return add_setup(name, call_symbol(symbol(name), arguments...));
}

} // namespace workload
