// SPDX-License-Identifier: Apache-2.0
// The truth: every API call the workload made, aggregated by equal fields, written as JSON lines at the end. Added to
// once per step and thread, never per call.
#pragma once

#include "../abi.hpp"

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace workload {

struct Data {                      // what a copy, a fill, a prefetch, an allocation or a free is about
    std::optional<uint64_t> bytes; // of one call; unknown where nobody can read how many
    uint64_t copies = 0;           // in one call; 0: this kind of call has none
    std::vector<uint64_t> sizes{}; // of the copies of a batch
    std::string source{}, destination{}, direction{}; // empty: none
    std::string holding{};                            // of what is allocated or freed

    auto operator<=>(const Data&) const = default;
};

struct Call {
    std::string layer;    // driver, runtime
    std::string function; // the exported symbol
    std::string kind;     // kernel, graph, host, copy, set, prefetch, alloc, free, sync, poll, setup
    std::string kernel;   // device name, mangled; empty if there is none
    uint64_t handle = 0;  // what identifies the kernel or graph in the call's arguments
    standin::Dim3 grid, block;
    uint64_t shared = 0;
    uint64_t stream = 0;
    int device = -1; // of the calling thread
    int result = 0;
    bool recorded = false; // into a graph, by capture
    bool nested = false;   // made by the runtime, on behalf of a runtime call that is listed too
    bool implied = false;  // no call, but what another call brought with it
    uint64_t kernels = 0;  // that one such call starts
    std::optional<Data> data;
    std::optional<bool> synchronous; // the caller waits for the device; known of the kinds that are timed
    // Filled in by add().
    int tid = 0;
    std::string comm;

    auto operator<=>(const Call&) const = default;
};

struct Tally {
    uint64_t count = 0;
    uint64_t duration_ns = 0; // around the calls
    uint64_t slept_ns = 0;    // asked of the driver

    void operator+=(const Tally& more)
    {
        count += more.count;
        duration_ns += more.duration_ns;
        slept_ns += more.slept_ns;
    }
};

// Where the truth goes; empty: nowhere. The first process of a run truncates it, forked and exec'd ones append.
void open_truth(const std::string& path, bool append);
const std::string& truth_path();

std::string thread_name();
std::string summary(const char* type, const std::string& fields); // a line about this process

void add(Call call, const Tally&);
void forget(); // in a forked child: what came before is the parent's
void write_truth();

} // namespace workload
