// SPDX-License-Identifier: Apache-2.0
// The truth file: every API call of the workload, aggregated by equal fields, written as JSON lines when it exits.
// Updated once per step and thread, not per call.
#pragma once

#include "../abi.hpp"

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace workload {

// Arguments of a copy, fill, prefetch, allocation or free.
struct Data {
    std::optional<uint64_t> bytes;                    // bytes per call; unset if the arguments are unreadable
    uint64_t copies = 0;                              // copies per call; 0: not a copy
    std::vector<uint64_t> sizes{};                    // bytes of each copy of a batch
    std::string source{}, destination{}, direction{}; // empty: none
    std::string holding{};                            // kind of the memory allocated or freed

    auto operator<=>(const Data&) const = default;
};

struct Call {
    std::string layer;    // driver, runtime
    std::string function; // the exported symbol
    std::string kind;     // kernel, graph, host, copy, set, prefetch, alloc, free, sync, poll, setup
    std::string kernel;   // device name, mangled; empty if there is none
    uint64_t handle = 0;  // the kernel or graph that was passed to the call
    standin::Dim3 grid, block;
    uint64_t shared = 0;
    uint64_t stream = 0;
    int device = -1; // device of the calling thread
    int result = 0;
    bool recorded = false; // captured into a graph
    bool nested = false;   // a driver call that the runtime made for a runtime call that is also listed
    bool implied = false;  // not a call, but memory freed by a call listed elsewhere
    uint64_t kernels = 0;  // kernels that one call starts
    std::optional<Data> data;
    std::optional<bool> synchronous; // the caller waits for the device; unset for kinds that are not timed
    // These are set by add().
    int tid = 0;
    std::string comm;

    auto operator<=>(const Call&) const = default;
};

struct Tally {
    uint64_t count = 0;
    uint64_t duration_ns = 0; // total time of the calls, measured by the caller
    uint64_t slept_ns = 0;    // total of the requested delays of these calls

    void operator+=(const Tally& more)
    {
        count += more.count;
        duration_ns += more.duration_ns;
        slept_ns += more.slept_ns;
    }
};

// Path of the truth file; empty: none. The first process of a run truncates it; forked processes, and programs started
// by exec, append.
void open_truth(const std::string& path, bool append);
const std::string& truth_path();

std::string thread_name();
std::string summary(const char* type, const std::string& fields); // a line about this process

void add(Call call, const Tally&);
void forget(); // in a forked child: earlier calls are the parent's
void write_truth();

} // namespace workload
