// SPDX-License-Identifier: Apache-2.0
// Notes that accompany a report: losses (bpf/shared/loss.h), the overhead of tracing, and why a report is empty.
#pragma once

#include "attach/calibrate.hpp"
#include "base/options.hpp"
#include "bpf/shared/loss.h"
#include "bpf/shared/probe.h"
#include "rows/output.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class Losses {
public:
    // object: loaded; has the map `losses`.
    explicit Losses(const bpf_object* object);

    // Losses since the last call, without those of count 0.
    std::vector<Loss> since_last();
    uint64_t sum() const;                                             // losses of all kinds since the start
    void add(loss what, uint64_t count) { added_.at(what) += count; } // losses detected in user space

private:
    std::array<uint64_t, LOSSES> read() const;

    const bpf_object* object_;
    int map_fd_;
    std::array<uint64_t, LOSSES> seen_{}, added_{};
};

// Overhead of tracing per interval: CPU time of the probes in the traced processes, and of this program.
class Cost {
public:
    // hits_fd: the kernel side's counts of probe hits. The cost of one hit is measured in the background.
    Cost(int hits_fd, Tier tier) : hits_fd_(hits_fd), per_hit_(tier) {}

    struct Share {
        double hits_per_second = 0;
        std::optional<double> probes_percent; // of one CPU; nullopt: not measured yet, or cannot be measured
        std::optional<double> own_percent;    // of one CPU; nullopt in the first interval
    };
    Share since_last(double seconds);

private:
    int hits_fd_;
    ProbeCostMeter per_hit_;
    std::array<uint64_t, HITS> seen_{};
    uint64_t own_ns_ = 0;
};

// Facts for the sentence that replaces an empty report: were there processes that could have made a call?
struct EmptyReport {
    std::string_view noun{}; // singular of the counted thing: "launch"
    std::chrono::nanoseconds length{};
    std::string cgroup{};          // name of the cgroup filter; empty: none
    std::optional<size_t> users{}; // processes in scope that map a driver; nullopt: irrelevant to this tool
    bool named_alone = false;      // the only filter is a name (-n)
    bool some_unreadable = false;  // some processes could not be scanned, so there may be more users
    size_t unreadable_files = 0;   // CUDA libraries that could not be opened
    bool target_ended = false;     // the single target has exited
    bool driver_missing = false;   // no GPU driver is loaded in the kernel
};

// "no launch by process 1234 in 5 s; it maps no CUDA driver"
std::string sentence(const EmptyReport& report, const Options& options);

} // namespace gpusnoop
