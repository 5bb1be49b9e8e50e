// SPDX-License-Identifier: Apache-2.0
// What a tool probes, as a table: which of its BPF programs serves which calls, of which library.
#pragma once

#include "attach/links.hpp"
#include "attach/probe_kinds.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gpusnoop {

// HIP has one layer, which counts whichever of CUDA's does.
enum class Layers : uint8_t {
    none = 0,
    cuda_driver = 1,
    runtime = 2,
    nccl = 4,
    hip = 8,
    driver = cuda_driver | hip,
    runtime_and_hip = runtime | hip,
    both = driver | runtime,
};

// A row of the table. The rows of one program add up.
struct Program {
    std::string_view name; // as in Hook
    Layers of = Layers::both;
    CallSet calls{};
    bool returns = false;          // with a return probe
    std::string_view without{};    // as in Hook
    bool always = true;            // as in Hook
    bool sampled = false;          // as in Hook; only where a call is all done at its entry
    std::string_view instead_of{}; // as in Hook; that program stands above it in the table
};

// The functions to probe, each once, and the programs that are attached to them, in the order of the table.
struct ProbePlan {
    std::vector<Probe> probes;
    std::vector<Hook> hooks;
};
ProbePlan plan_probes(std::span<const Program> programs);

} // namespace gpusnoop
