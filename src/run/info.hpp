// SPDX-License-Identifier: Apache-2.0
// --info: the features of this machine, and how a tool would use them with the given options.
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

// A run that has loaded its BPF object and attached nothing.
struct InfoOf {
    std::string_view tool;
    const Options& options;
    const bpf_object* object;
    std::optional<Tier> tier; // nullopt: no user-space probes
    const RunPlan& plan;
    std::span<const Probe> probes;
    const Scope& scope;
    const std::vector<std::string>& remarks;
    KernelHooks* kernel_hooks; // may be null
};

// Text, or a line of JSON with -j. Takes a second or two: it tries each way of attaching, and queries NVML.
std::string info(const InfoOf& of);

} // namespace gpusnoop
