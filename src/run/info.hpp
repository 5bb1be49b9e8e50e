// SPDX-License-Identifier: Apache-2.0
// Output of --info: the features of this machine, and how the tool would use them with the given options.
#pragma once

#include "attach/probes.hpp"
#include "attach/programs.hpp"
#include "attach/tier.hpp"
#include "base/options.hpp"
#include "run/tool.hpp"
#include "who/scope.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct bpf_object;

namespace gpusnoop {

// State of a run that has loaded its BPF object and attached nothing.
struct InfoOf {
    std::string_view tool;
    const Options& options;
    const bpf_object* object;
    std::optional<Tier> tier; // nullopt if the tool has no user-space probes
    const RunPlan& plan;
    std::span<const Probe> probes;
    const Scope& scope;
    const std::vector<std::string>& remarks;
    KernelHooks* kernel_hooks; // may be null
};

// Returns text, or a line of JSON with -j. Takes one or two seconds, because it tries each way of attaching and queries
// NVML.
std::string info(const InfoOf& of);

} // namespace gpusnoop
