// SPDX-License-Identifier: Apache-2.0
// What this machine offers, and what a tool takes of it with the options given (--info).
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

// Of a run that has loaded its BPF object, and attached nothing.
struct InfoOf {
    std::string_view tool;
    const Options& options;
    const bpf_object* object;
    std::optional<Tier> tier; // nullopt: nothing in user memory is probed
    const RunPlan& plan;
    std::span<const Probe> probes;
    const Scope& scope;
    const std::vector<std::string>& remarks;
    KernelHooks* kernel_hooks; // may be null
};

// Text, or a line of JSON where that was asked for. Tries each way of attaching, and asks NVML: a second or two.
std::string info(const InfoOf& of);

} // namespace gpusnoop
