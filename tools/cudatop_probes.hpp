// SPDX-License-Identifier: Apache-2.0
// What cudatop probes: what all other tools do, each function once.
#pragma once

#include "links.hpp"
#include "probes.hpp"

#include <span>
#include <vector>

namespace gpusnoop::cudatop {

// cheap: only what entry probes can count.
std::vector<Probe> probes_of_all(bool cheap);
// latency: launches and copies have return probes, too.
std::vector<Hook> hooks_of(std::span<const Probe> probes, bool cheap, bool latency);

} // namespace gpusnoop::cudatop
