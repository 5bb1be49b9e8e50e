// SPDX-License-Identifier: Apache-2.0
// Finds the CUDA wait or NCCL call that each thread of a process is in. A helper process unwinds the threads' stacks
// (code/pending_calls.hpp).
#pragma once

#include "attach/probes.hpp"
#include "names/copied_stacks.hpp"
#include "proc/threads.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

class ThreadPlaces {
public:
    // Finds calls of the NCCL functions in `probes`, and calls that wait for the GPU.
    explicit ThreadPlaces(std::span<const Probe> probes);

    // Call this once a second with all processes of interest. Other processes are forgotten. Results are available at
    // the next scan.
    void scan(const std::set<pid_t>& processes, uint64_t now_ns);

    struct Place {
        const Probe* probe = nullptr;
        uint64_t since_ns = 0;           // time of the first scan that found this call
        unsigned scans = 0;              // number of consecutive scans that found this call
        std::vector<uint64_t> callers{}; // return addresses, innermost first

        bool is_wait() const { return probe->library != Library::nccl; }
    };
    // Threads that are in an NCCL call or a wait for the GPU, by thread id.
    const std::map<uint32_t, Place>& of(pid_t pid) const;
    // True if the process has been scanned. Then, threads that of() does not list are neither in an NCCL call nor
    // waiting for the GPU.
    bool is_known(pid_t pid) const;

private:
    struct Thread {
        PendingCall call;
        uint64_t since_ns = 0;
        unsigned scans = 0;
    };
    struct Process {
        std::map<uint32_t, Thread> threads;
        std::map<uint32_t, Place> places;
        bool answered = false;
    };

    void apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);

    std::span<const Probe> probes_;
    std::map<pid_t, Process> processes_;
    uint64_t scanned_ns_ = 0;
    ThreadRegisters registers_;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
