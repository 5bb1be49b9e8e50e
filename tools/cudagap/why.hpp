// SPDX-License-Identifier: Apache-2.0
// Why each process gives the GPU no more work, in a sentence (--why).
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

// Of a process' threads, the one that launches most is what it is about.
void print_why(Output& output, const std::vector<ThreadTime>& times, const Evidence& evidence, const Context& context,
               uint64_t wall_ns);

} // namespace gpusnoop::cudagap
