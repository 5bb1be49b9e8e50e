// SPDX-License-Identifier: Apache-2.0
// Information that accompanies a report: losses (bpf/shared/loss.h), the overhead of tracing, and the reason why a
// report is empty.
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
    // object: must be loaded and have the map `losses`.
    explicit Losses(const bpf_object* object);

    // Losses since the last call of this function, without those whose count is 0.
    std::vector<Loss> since_last();
    uint64_t sum() const;                                             // total of all losses since the start
    void add(loss what, uint64_t count) { added_.at(what) += count; } // adds losses detected in user space

private:
    std::array<uint64_t, LOSSES> read() const;

    const bpf_object* object_;
    int map_fd_;
    std::array<uint64_t, LOSSES> seen_{}, added_{};
};

// Overhead of tracing per interval: CPU time that probes take in the traced processes, and CPU time of this program.
class Cost {
public:
    // hits_fd: map in which the kernel side counts probe hits. The cost of a hit is measured in the background.
    Cost(int hits_fd, Tier tier) : hits_fd_(hits_fd), per_hit_(tier) {}

    struct Share {
        double hits_per_second = 0;
        std::optional<double> probes_percent; // percent of one CPU; nullopt if not measured yet, or not measurable
        std::optional<double> own_percent;    // percent of one CPU; nullopt in the first interval
    };
    Share since_last(double seconds);

private:
    int hits_fd_;
    ProbeCostMeter per_hit_;
    std::array<uint64_t, HITS> seen_{};
    uint64_t own_ns_ = 0;
};

// Facts for the sentence that is printed instead of an empty report, mainly whether any process could have made a call.
struct EmptyReport {
    std::string_view noun{}; // singular of the counted events, such as "launch"
    std::chrono::nanoseconds length{};
    std::string cgroup{}; // the cgroup filter; empty if there is none
    // processes in scope that map a driver; nullopt if the tool has no user-space probes
    std::optional<size_t> users{};
    bool named_alone = false;     // true if the only filter is a name (-n)
    bool some_unreadable = false; // true if some processes could not be scanned, so there may be more users
    size_t unreadable_files = 0;  // CUDA libraries that could not be opened
    bool target_ended = false;    // true if the only target has exited
    bool driver_missing = false;  // true if no GPU driver is loaded in the kernel
};

// The sentence, such as "no launch by process 1234 in 5 s; it maps no CUDA driver".
std::string sentence(const EmptyReport& report, const Options& options);

} // namespace gpusnoop
