// SPDX-License-Identifier: Apache-2.0
// BPF programs of cudatop: the probes of all other tools, with only one probe per function.
#pragma once

#include "attach/programs.hpp"

#include <vector>

namespace gpusnoop::cudatop {

// cheap: use only entry probes. latency: add return probes to launches and copies.
std::vector<Program> programs(bool cheap, bool latency);

} // namespace gpusnoop::cudatop
