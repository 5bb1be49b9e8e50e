// SPDX-License-Identifier: Apache-2.0
// Notes beside a report: what was lost (bpf/shared/loss.h), what tracing costs, and why a report is empty.
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
    // object: loaded; with a map of losses.
    explicit Losses(const bpf_object* object);

    // What has been lost since the last call.
    std::vector<Loss> since_last();
    uint64_t sum() const;                                             // of everything, since the beginning
    void add(loss what, uint64_t count) { added_.at(what) += count; } // that the front end has noticed

private:
    std::array<uint64_t, LOSSES> read() const;

    const bpf_object* object_;
    int map_fd_;
    std::array<uint64_t, LOSSES> seen_{}, added_{};
};

// What tracing takes: from those that are traced, and for itself.

// What an interval cost: the traced processes, by hits of probes, and this program.
class Cost {
public:
    // The kernel side's counts of hits; what one takes is measured meanwhile.
    Cost(int hits_fd, Tier tier) : hits_fd_(hits_fd), per_hit_(tier) {}

    struct Share {
        double hits_per_second = 0;
        std::optional<double> probes_percent; // of one CPU's time; nullopt: not measured yet, or that was not possible
        std::optional<double> own_percent;    // nullopt: of the first interval
    };
    Share since_last(double seconds);

private:
    int hits_fd_;
    ProbeCostMeter per_hit_;
    std::array<uint64_t, HITS> seen_{};
    uint64_t own_ns_ = 0;
};

// What stands in the place of a report that has nothing to show: whether nobody did anything, or nobody could have.
struct EmptyReport {
    std::string_view noun{}; // of what was looked for: "launch"
    std::chrono::nanoseconds length{};
    std::string cgroup{};          // by its name; empty: all of them
    std::optional<size_t> users{}; // processes asked for that map a driver; nullopt: that does not matter
    bool named_alone = false;      // those are processes whose name contains what was asked for
    bool some_unreadable = false;  // processes, so that there may be more of them
    size_t unreadable_files = 0;   // CUDA libraries that could not be opened
    bool target_ended = false;     // the one process that was asked for
    bool driver_missing = false;   // of the kernel
};

// "no launch by process 1234 in 5 s; it maps no CUDA driver"
std::string sentence(const EmptyReport& report, const Options& options);

} // namespace gpusnoop
