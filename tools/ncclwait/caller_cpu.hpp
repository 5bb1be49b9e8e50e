// SPDX-License-Identifier: Apache-2.0
// CPU and run-queue time of threads that make NCCL calls. It is read from schedstat, so no probe is needed.
#pragma once

#include "proc/mapped_file.hpp"
#include "proc/process.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace gpusnoop {

using Caller = std::pair<ImageId, uint32_t>; // process and thread id

class CallerCpu {
public:
    struct Share {
        uint64_t covered_ns = 0; // length of the measured interval. It begins at the last report, or at the thread's
                                 // first reading if that is later, and ends at the thread's last reading
        uint64_t used_ns = 0;
        uint64_t waited_ns = 0; // time for which the thread was runnable but had no CPU
    };

    // Call this once a second, and before each report, with the threads that have made calls since the last report. A
    // thread that exits keeps its last values.
    void read(std::span<const Caller> callers, uint64_t now_ns);
    // CPU time of a thread since the last report; nullopt until read() has run twice for the thread.
    std::optional<Share> of(const Caller& caller) const;
    // Call this after each report. Forgets threads that have exited.
    void begin_interval();

private:
    void track(const Caller& caller, uint64_t now_ns);

    struct Reading {
        ThreadCpuTime share;
        uint64_t ns = 0; // time of the reading, CLOCK_MONOTONIC
    };
    struct Known {
        Reading first, last;
        bool exited = false;
    };
    std::map<Caller, Known> callers_;
};

// Decides when to scan the processes of a silent communicator (one without new calls). Most silent communicators are
// merely idle. Scans are expensive, because they require that waits for the GPU are traced. So a silent communicator is
// scanned for a few seconds, then again after pauses that double each time.
class IdleScans {
public:
    // Number of scans between two pauses, enough for a verdict. A verdict needs the same result from two scans, and the
    // result of a scan may arrive only just before the next scan.
    static constexpr unsigned scans_in_a_row = 4;
    static constexpr uint64_t first_pause_ns = 1'000'000'000, longest_pause_ns = 16'000'000'000;

    // Call this once a second for each silent communicator. since_ns: time when it became silent. waits: true if a
    // thread of one of its ranks is known to wait for the GPU; scans of the communicator are then not paused.
    bool is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns);
    // Forgets communicators for which is_due() was not called in this round, because they are no longer silent.
    void end_round();

private:
    struct Silence {
        uint64_t since_ns = 0;
        unsigned scanned = 0; // scans since the last pause
        uint64_t pause_ns = 0, until_ns = 0;
        bool asked = false;
    };
    std::map<uint64_t, Silence> silences_;
};

} // namespace gpusnoop
