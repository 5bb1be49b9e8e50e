// SPDX-License-Identifier: Apache-2.0
// What tracing takes: from those that are traced, and for itself.
#pragma once

#include "attach/calibrate.hpp"
#include "bpf/shared/probe.h"

#include <array>
#include <cstdint>
#include <optional>

namespace gpusnoop {

// What an interval cost: the traced processes, by hits of probes, and this program.
class Cost {
public:
    // The kernel side's counts of hits; what one takes is measured meanwhile.
    Cost(int hits_fd, Tier tier) : hits_fd_(hits_fd), of_one_(tier) {}

    struct Share {
        double hits_per_second = 0;
        std::optional<double> probes_percent; // of one CPU's time; nullopt: not measured yet, or that was not possible
        std::optional<double> own_percent;    // nullopt: of the first interval
    };
    Share since_last(double seconds);

private:
    int hits_fd_;
    ProbeCostMeter of_one_;
    std::array<uint64_t, HITS> seen_{};
    uint64_t own_ns_ = 0;
};

} // namespace gpusnoop
