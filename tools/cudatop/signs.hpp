// SPDX-License-Identifier: Apache-2.0
// Measurements of one process over the last few seconds. They are the input of the rules.
#pragma once

#include "tools/cudatop/machine_load.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Kinds of calls whose failures are counted separately.
enum class Calls : uint8_t { launches, graphs, copies, waits, memory, driver, count };

struct Failing {
    uint64_t calls = 0; // number of calls, including failed calls
    uint64_t failed = 0;
    std::string error;  // name of the most frequent error
    double seconds = 0; // time since the first failure
};

// A call that has not returned.
struct UnfinishedCall {
    double seconds = 0;   // duration so far, or time since tracing began if the call is older
    std::string name;     // "the GPU" or "a stream" for a wait; else the function or driver command
    bool earlier = false; // the call began before tracing
};

// The process with the most launches among the other processes on the same GPU.
struct Neighbour {
    std::string gpu;    // text of the column GPU
    std::string name;   // command name, pid and owner
    double percent = 0; // share of the GPU's launches that the neighbour makes
};

// Processes that exit and are started again.
struct RestartLoop {
    uint64_t starts = 0;
    double seconds = 0;     // time since the first start
    std::string last_error; // words of the verdict on the last process whose calls failed; empty if none
};

struct Signs {
    double seconds = 0; // length of the period that the counts cover, which ends now

    std::optional<UnfinishedCall> wait; // the longest unfinished wait
    std::string suspension; // why the waiting thread is suspended, such as "stopped by a signal"; empty if it is not
    double suspended_seconds = 0; // how long the thread was suspended since the wait began
    bool idle_since = false;      // no thread has launched anything since the wait began
    bool has_nccl = false;        // the process has NCCL threads; checked only during long waits
    double cpu_percent = 0;       // CPU time of all threads of the process, as a share of one CPU
    // Share of time that a thread was ready to run but had no CPU. Measured for the calling thread that starved most.
    double starving_percent = 0;
    // Share of time that a thread was asleep or blocked, outside waits for the GPU. Measured for the thread that makes
    // the most launches.
    double off_cpu_percent = 0;
    std::optional<double> gpu_percent; // how busy the process's busiest GPU is, according to NVML
    unsigned cpus = 0;                 // number of CPUs that the process may run on; 0: unknown
    std::optional<MachineLoad> load{}; // machine load: mean of the readings at the end of each interval in which a
                                       // thread starved

    std::array<Failing, static_cast<size_t>(Calls::count)> failing;
    const Failing& failures(Calls calls) const { return failing[static_cast<size_t>(calls)]; }

    uint64_t launches = 0;        // number of launches of kernels and graphs, without captured launches
    uint64_t grids = 0;           // number of kernel launches whose number of blocks is known
    uint64_t small_grids = 0;     // number of these launches with fewer than FEW_BLOCKS blocks
    double small_seconds = 0;     // duration of the current period in which most grids are small
    double launching_percent = 0; // percentage of its time that one thread spends in launch calls, for the thread with
                                  // the highest value; 0 if not measured
    uint64_t captured = 0;        // number of launches recorded into graphs
    uint64_t captures = 0;        // number of captures that produced a graph
    uint64_t instantiations = 0;
    double capturing_seconds = 0; // duration of the current period in which the process keeps making graphs

    uint64_t copies = 0;
    uint64_t small_copies = 0; // number of copies whose size is known and under 64 KiB
    uint64_t synchronous = 0;
    std::string copied_from; // function that makes most synchronous copies, according to sampled stacks; empty: unknown

    uint64_t polls = 0;
    // Percentage of its time that one thread spends in waits, for the thread with the highest value.
    double waiting_percent = 0;

    uint64_t refused = 0; // number of allocations that failed with out of memory
    uint64_t allocations = 0;
    uint64_t refused_bytes = 0; // size of the last refused allocation
    int64_t grown_bytes = 0;    // growth of device memory
    uint64_t frees = 0;
    double growing_seconds = 0;         // duration of the current period in which memory grows without a free
    std::optional<uint64_t> free_bytes; // free memory on the process's fullest GPU, according to NVML
    unsigned free_gpu = 0;

    std::optional<UnfinishedCall> stuck;       // the longest stuck API call other than a wait
    std::optional<UnfinishedCall> driver_call; // the longest pending call into the GPU driver
    std::optional<uint32_t> xid;               // the last GPU error that the driver reported for the process
    std::optional<Neighbour> neighbour;
    std::optional<RestartLoop> restarts;
};

} // namespace gpusnoop
