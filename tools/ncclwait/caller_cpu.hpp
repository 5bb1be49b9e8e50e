// SPDX-License-Identifier: Apache-2.0
// What the threads that make calls have had of the CPUs: by the kernel's own sums of each thread, which need no probe.
#pragma once

#include "proc/mapped_file.hpp"
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
        ThreadCpuTime share;
        uint64_t ns = 0; // CLOCK_MONOTONIC
    };
    struct Known {
        Reading first, last;
        bool ended = false;
    };
    std::map<Caller, Known> callers_;
};

// When to look at what the processes of a silent communicator do. Most of these are idle, and while they are looked at,
// their waits are traced. So it is for a few seconds, and again after pauses that double while nothing changes.
class IdleLooks {
public:
    static constexpr unsigned looks = 4; // in a row: an answer comes by the second one, and two are to be the same
    static constexpr uint64_t first_pause_ns = 1'000'000'000, longest_pause_ns = 16'000'000'000;

    // To be called once a second for each that is silent. waits: one of its threads is in a wait for the device, as far
    // as is known.
    bool is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns);
    // Those that have not been asked about since the last time are not silent any more.
    void end_round();

private:
    struct Silence {
        uint64_t since_ns = 0;
        unsigned looked = 0; // in a row
        uint64_t pause_ns = 0, until_ns = 0;
        bool asked = false;
    };
    std::map<uint64_t, Silence> silences_;
};

} // namespace gpusnoop
