// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a probe: the time that it adds to measured durations, and the time that it takes from the traced
// thread.
#pragma once

#include "attach/tier.hpp"
#include "reader/helper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Median duration in ns that probes of this tier measure for an empty function on this machine. nullopt if the
// measurement fails. Takes about 50 ms.
std::optional<uint64_t> duration_floor_ns(Tier tier);

// Tries the tier: attaches entry and return probes to a function of this program, calls it, and checks that the probes
// were hit. Returns an empty string if the tier works, else the reason.
std::string why_tier_fails(Tier tier);

// Cost of a probe hit to the traced thread, in ns, without the run time of the BPF program.
struct ProbeCost {
    double entry_ns = 0;
    double return_ns = 0;
};
// Measures the cost in this tier on this machine. It takes half a second, in a helper, so that the event loop does not
// wait. Uses no Reader, because the helper measures once and receives no request.
class ProbeCostMeter {
public:
    explicit ProbeCostMeter(Tier tier);
    ~ProbeCostMeter();
    ProbeCostMeter(const ProbeCostMeter&) = delete;
    ProbeCostMeter& operator=(const ProbeCostMeter&) = delete;
    // nullopt: not measured yet, or the measurement failed.
    const std::optional<ProbeCost>& cost();

private:
    std::optional<Helper> helper_;
    std::optional<ProbeCost> cost_;
};

} // namespace gpusnoop
