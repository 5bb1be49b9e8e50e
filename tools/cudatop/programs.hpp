// SPDX-License-Identifier: Apache-2.0
// The BPF programs of cudatop: the probes of all other tools, each function once.
#pragma once

#include "attach/programs.hpp"

#include <vector>

namespace gpusnoop::cudatop {

// cheap: only entry probes. latency: also return probes on launches and copies.
std::vector<Program> programs(bool cheap, bool latency);

} // namespace gpusnoop::cudatop
