// SPDX-License-Identifier: Apache-2.0
// What the threads that make calls have had of the CPUs: by the kernel's own sums of each thread, which need no probe.
#pragma once

#include "proc/image.hpp"
#include "proc/process.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace gpusnoop {

using Caller = std::pair<ImageId, uint32_t>; // a thread of a process

class CallerCpu {
public:
    struct Share {
        uint64_t covered_ns = 0; // from when the thread was met, or the last report
        uint64_t used_ns = 0;
        uint64_t waited_ns = 0; // ready to run, but without a CPU
    };

    // To be called once a second, with those that have called since the last report, and before a report: of one that
    // ends, what it has had is known as of the last time.
    void look(std::span<const Caller> callers, uint64_t now_ns);
    // nullopt: not known.
    std::optional<Share> of(const Caller& caller) const;
    // A report has been made. Those that have ended are forgotten.
    void begin_interval();

private:
    void meet(const Caller& caller, uint64_t now_ns);

    struct Reading {
        CpuShare share;
        uint64_t ns = 0; // CLOCK_MONOTONIC
    };
    struct Known {
        Reading first, last;
        bool ended = false;
    };
    std::map<Caller, Known> callers_;
};

} // namespace gpusnoop
