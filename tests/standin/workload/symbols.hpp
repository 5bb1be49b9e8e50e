// SPDX-License-Identifier: Apache-2.0
// Lookup of API functions. Driver functions are looked up by name in a library opened at run time, so that all forms of
// the workload share this source. Runtime functions are those that this form is linked with.
#pragma once

#include "../abi_allocation.hpp"
#include "../abi_graph.hpp"
#include "truth.hpp"

#include <string>
#include <utility>

namespace workload {

// Opens the driver library once. driver_symbol() returns null if the library has no such function.
void open_driver(const std::string& path = "libcuda.so.1");
void* driver_symbol(const std::string& name);

// True if the driver has no control functions: it is NVIDIA's, or the stand-in poses as NVIDIA's (WORKLOAD_DEVICE is
// set).
bool on_device();
void* runtime_symbol(const std::string& name);
void* symbol(const std::string& name); // a driver (cu...) or runtime (cuda...) function, which must exist

// Copies the driver's own counters, indexed by standin::Class. Returns false if the stand-in driver is not open, and
// does not open it.
bool driver_counters(uint64_t* counts, int n);

// Copies the totals of memory that this process holds and has released, indexed by standin::Holding.
bool driver_holdings(standin::HoldingTally* held, standin::HoldingTally* released, uint64_t* peak);
void forget_driver_state(); // resets these totals and the records of graphs; called in a forked child

// State of streams and graphs in the stand-in driver, without API calls; false, 0 or empty if the driver is not open.
bool driver_is_capturing(void* stream);
uint64_t driver_generation(void* graph_or_exec, bool is_exec);
uint64_t driver_kernels(void* exec); // number of kernels that a launch starts
std::vector<standin::GraphRecord> driver_graphs();

template<class... Arguments>
int call_symbol(void* function, Arguments... arguments)
{
    return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// Makes a preparatory call of the named function. It is recorded in the truth with the kind "setup".
int add_setup(const std::string& name, int result);
template<class... Arguments>
int setup(const std::string& name, Arguments... arguments)
{
    return add_setup(name, call_symbol(symbol(name), arguments...));
}

} // namespace workload
