// SPDX-License-Identifier: Apache-2.0
// GPUs that are allotted to a row's pod, container or Slurm job on a Kubernetes node.
#pragma once

#include "rows/process_gpus.hpp"
#include "rows/who.hpp"
#include "tools/gpuspend/grants.hpp"

#include <map>
#include <set>
#include <string>

namespace gpusnoop::cudatop {

class Held {
public:
    explicit Held(const std::string& host_root) : host_root_(host_root), grants_(host_root) {}

    // Reads the allotments again if they are a few seconds old. now_ns: CLOCK_MONOTONIC.
    void refresh(const NvmlFigures& figures, uint64_t now_ns);
    // The GPUs allotted to these owners; empty if there are none, or if unknown.
    std::set<Gpu> of(const WhoSeen& who) const;

private:
    std::string host_root_;
    MachineGpus gpus_;
    Grants grants_;
    std::map<std::string, std::set<Gpu>> by_owner_;
};

} // namespace gpusnoop::cudatop
