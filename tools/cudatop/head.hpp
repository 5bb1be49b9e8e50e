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

// Facts about an interval, for the head of the screen and for the sum row.
struct Facts {
    size_t processes = 0;
    std::string attached;
    uint64_t lost = 0; // number of lost events since the start
    Cost::Share cost;
};

// Adds the facts to the snapshot, both as text for people and as columns of the sum row for scripts.
void add_facts(Snapshot& snapshot, const Facts& facts);

// For each GPU that NVML knows, adds its state and the names of processes that use it.
void add_gpus(Snapshot& snapshot, const NvmlFigures& figures, const ProcessGpus& gpus, Processes& processes);

class Head {
public:
    // warns_of_cost: if true, warns once if tracing is expensive. Set it to false if the user has accepted or limited
    // the cost with an option.
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
