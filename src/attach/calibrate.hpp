// SPDX-License-Identifier: Apache-2.0
// The share of the probes in every duration they measure.
#pragma once

#include "attach/tier.hpp"
#include "reader/helper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Median nanoseconds that a function which does nothing seems to take, measured on this machine in this tier; nullopt
// where that could not be found out. Takes about 50 ms.
std::optional<uint64_t> duration_floor_ns(Tier tier);

// Tries this tier: attaches entry and return to a function of our own, calls it and looks whether both were hit. Empty
// where it works; else why not, in a sentence.
std::string why_tier_fails(Tier tier);

// What a hit of a probe takes from the traced thread, ns, beside what its program does.
struct ProbeCost {
    double entry_ns = 0;
    double return_ns = 0;
};
// Measured on this machine in this tier by a process of its own: that takes half a second, and the loop does not wait.
// No Reader: it measures once, unasked.
class ProbeCostMeter {
public:
    explicit ProbeCostMeter(Tier tier);
    ~ProbeCostMeter();
    ProbeCostMeter(const ProbeCostMeter&) = delete;
    ProbeCostMeter& operator=(const ProbeCostMeter&) = delete;
    // nullopt: not yet, or it could not be found out.
    const std::optional<ProbeCost>& cost();

private:
    std::optional<Helper> helper_;
    std::optional<ProbeCost> cost_;
};

} // namespace gpusnoop
