// SPDX-License-Identifier: Apache-2.0
// What is known of one process, in figures: plain data, which rules look at.
#pragma once

#include "tools/cudatop/machine_load.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Kinds of calls that fail apart from each other.
enum class Calls : uint8_t { launches, graphs, copies, waits, memory, driver, count };

struct Failing {
    uint64_t calls = 0; // those that failed among them
    uint64_t failed = 0;
    std::string error;  // that most of them failed with, by name
    double seconds = 0; // since one failed first
};

// A call that has not returned.
struct UnfinishedCall {
    double seconds = 0;   // so far, or since tracing began
    std::string what;     // "the device", "a stream"; of a driver call its name
    bool earlier = false; // it began before tracing did
};

// Of another process on one of its GPUs: the one that launches most.
struct Neighbour {
    std::string gpu;    // as the column GPU has it
    std::string name;   // and pid, and whose it is
    double percent = 0; // of the launches on that GPU
};

// Processes that end and are started again.
struct RestartLoop {
    uint64_t starts = 0;
    double seconds = 0;     // since the first of them
    std::string last_error; // of one of these processes, in words; empty: none
};

struct Signs {
    double seconds = 0; // that the counts cover, up to now

    std::optional<UnfinishedCall> wait; // the longest
    std::string suspension;             // of its thread: "stopped by a signal"; empty: it is not
    double suspended_seconds = 0;       // of the wait, up to now
    bool idle_since = false;            // nothing was launched while it went on, by any thread
    bool has_nccl = false;              // NCCL's threads run in the process, if it waits for long
    double cpu_percent = 0;             // of one CPU, of the whole process
    double starving_percent = 0; // of the time of the calling thread that was ready to run without a CPU for longest
    double off_cpu_percent =
        0; // of the time of the thread that launches most: off the CPUs, ready for none, in no wait
    std::optional<double> gpu_percent; // of the time in which the busiest of its GPUs was busy, by NVML
    unsigned cpus = 0;                 // that the process may run on; 0: not looked at, or not known
    std::optional<MachineLoad> load{}; // on average, at the ends of intervals in which a thread had no CPU

    std::array<Failing, static_cast<size_t>(Calls::count)> failing;
    const Failing& of(Calls calls) const { return failing[static_cast<size_t>(calls)]; }

    uint64_t launches = 0;        // of kernels and of graphs; none of those that were captured
    uint64_t grids = 0;           // of those of kernels, with a known number of blocks
    uint64_t small_grids = 0;     // of fewer than FEW_BLOCKS
    double small_seconds = 0;     // most of many were so, without a pause
    double launching_percent = 0; // of the time of the thread that launches most; 0 where that is not measured
    uint64_t captured = 0;        // launches
    uint64_t captures = 0;        // that became graphs
    uint64_t instantiations = 0;
    double capturing_seconds = 0; // or instantiating, without a pause

    uint64_t copies = 0;
    uint64_t small_copies = 0; // of known size
    uint64_t synchronous = 0;
    std::string copied_from; // the function that most of those came from which had a stack; empty: not known

    uint64_t polls = 0;
    double waiting_percent = 0; // of the time of the thread that waits most

    uint64_t refused = 0;       // allocations, for want of memory
    uint64_t allocations = 0;   // that were asked for
    uint64_t refused_bytes = 0; // by the last of them
    int64_t grown_bytes = 0;    // device memory
    uint64_t frees = 0;
    double growing_seconds = 0;         // interval by interval, without a free
    std::optional<uint64_t> free_bytes; // of the GPU with the least, of those it is on; by NVML
    unsigned free_gpu = 0;

    std::optional<UnfinishedCall> stuck;       // the longest call that is no wait
    std::optional<UnfinishedCall> driver_call; // the longest
    std::optional<uint32_t> xid;               // the last error that the driver reported for it
    std::optional<Neighbour> neighbour;
    std::optional<RestartLoop> restarts;
};

} // namespace gpusnoop
