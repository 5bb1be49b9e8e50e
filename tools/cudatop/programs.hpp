// SPDX-License-Identifier: Apache-2.0
// What cudatop probes: what all other tools do, each function once.
#pragma once

#include "attach/programs.hpp"

#include <vector>

namespace gpusnoop::cudatop {

// cheap: only what entry probes can count. latency: launches and copies have return probes, too.
std::vector<Program> programs(bool cheap, bool latency);

} // namespace gpusnoop::cudatop
