// SPDX-License-Identifier: Apache-2.0
// The head of the screen: traced processes, losses, the cost of tracing, and the state of the GPUs.
#pragma once

#include "gpu/nvml_figures.hpp"
#include "rows/process_gpus.hpp"
#include "run/report_notes.hpp"
#include "run/tool.hpp"
#include "screen/snapshot.hpp"

#include <cstdint>
#include <optional>

namespace gpusnoop::cudatop {

// Facts about an interval.
struct Facts {
    size_t processes = 0;
    std::string attached;
    uint64_t lost = 0; // since the start
    Cost::Share cost;
};

// Adds the facts to the snapshot: as text for people, and as columns of the sum row for scripts.
void add_facts(Snapshot& snapshot, const Facts& facts);

// Adds the state and the users of each GPU that NVML knows.
void add_gpus(Snapshot& snapshot, const NvmlFigures& figures, const ProcessGpus& gpus, Processes& processes);

class Head {
public:
    // warns_of_cost: warn once if tracing is expensive. Not useful with options that accept or limit the cost.
    Head(const Running& running, int hits_fd, Tier tier, bool warns_of_cost)
        : running_(running), cost_(hits_fd, tier), warns_of_cost_(warns_of_cost)
    {}

    Facts facts(double seconds, size_t processes);

private:
    Running running_;
    Cost cost_;
    bool warns_of_cost_;
};

} // namespace gpusnoop::cudatop
