// SPDX-License-Identifier: Apache-2.0
// The truth: every API call the workload made, aggregated by equal fields, written as JSON lines at the end. Added to
// once per step and thread, never per call.
#pragma once

#include "../abi.hpp"

#include <compare>
#include <string>

namespace workload {

struct Call {
    std::string layer;    // driver, runtime
    std::string function; // the exported symbol
    std::string kind;     // kernel, graph, host, setup
    std::string kernel;   // device name, mangled; empty if there is none
    uint64_t handle = 0;  // what identifies the kernel or graph in the call's arguments
    standin::Dim3 grid, block;
    uint64_t shared = 0;
    uint64_t stream = 0;
    int device = -1; // of the calling thread
    int result = 0;
    bool recorded = false; // into a graph, by capture
    bool nested = false;   // made by the runtime, on behalf of a runtime call that is listed too
    uint64_t kernels = 0;  // that one such call starts
    // Filled in by add().
    int tid = 0;
    std::string comm;

    auto operator<=>(const Call&) const = default;
};

// Where the truth goes; empty: nowhere. The first process of a run truncates it, forked and exec'd ones append.
void open_truth(const std::string& path, bool append);
const std::string& truth_path();

void add(Call call, uint64_t count);
void forget(); // in a forked child: what came before is the parent's
void write_truth();

} // namespace workload
