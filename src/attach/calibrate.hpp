// SPDX-License-Identifier: Apache-2.0
// Measures two costs of a probe: the time that it adds to measured durations, and the time that the traced thread
// loses.
#pragma once

#include "attach/tier.hpp"
#include "reader/helper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Returns the median duration in ns that probes of this tier measure for an empty function on this machine, or nullopt
// if the measurement fails. Takes about 50 ms.
std::optional<uint64_t> duration_floor_ns(Tier tier);

// Tries the tier: attaches entry and return probes to a function of this program, calls it, and checks that the probes
// were hit. Returns an empty string if the tier works, else the reason.
std::string why_tier_fails(Tier tier);

// Time that a probe hit costs the traced thread, without the run time of the BPF program.
struct ProbeCost {
    double entry_ns = 0;
    double return_ns = 0;
};
// Measures the cost of a probe hit in this tier on this machine. A helper process measures for half a second, so that
// the event loop does not wait. Does not use the helper pool (Reader), because this helper receives no requests.
class ProbeCostMeter {
public:
    explicit ProbeCostMeter(Tier tier);
    ~ProbeCostMeter();
    ProbeCostMeter(const ProbeCostMeter&) = delete;
    ProbeCostMeter& operator=(const ProbeCostMeter&) = delete;
    // Returns nullopt if the measurement failed or has not finished.
    const std::optional<ProbeCost>& cost();

private:
    std::optional<Helper> helper_;
    std::optional<ProbeCost> cost_;
};

} // namespace gpusnoop
