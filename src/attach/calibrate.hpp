// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a probe: its share in measured durations, and what it takes from the traced thread.
#pragma once

#include "attach/tier.hpp"
#include "reader/helper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Median duration that probes measure for an empty function, in ns, on this machine in this tier. nullopt if the
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
// Measures the cost in a helper, on this machine in this tier. It takes half a second, and the loop does not wait. Not
// a Reader, because the helper measures once, without a question.
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
