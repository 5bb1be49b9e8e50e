// SPDX-License-Identifier: Apache-2.0
// Output of --why: one sentence per process that explains why it does not give the GPU more work.
#pragma once

#include "attach/probes.hpp"
#include "tools/cudagap/columns.hpp"
#include "tools/cudagap/gap_causes.hpp"
#include "who/cgroup_facts.hpp"

#include <span>
#include <vector>

namespace gpusnoop::cudagap {

struct Evidence {
    const GapCauses& causes;
    const PeersOf& peers;
    const Suspensions& suspensions;
    std::span<const Probe> probes;
};

// Describes each process by the thread that spent the most time in launch calls.
void print_why(Output& output, const std::vector<ThreadTime>& times, const Evidence& evidence, const Context& context,
               uint64_t wall_ns);

} // namespace gpusnoop::cudagap
