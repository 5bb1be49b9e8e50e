// SPDX-License-Identifier: Apache-2.0
#include "attach/programs.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

bool includes(Layers layers, Library library)
{
    const Layers one = library == Library::driver    ? Layers::cuda_driver
                       : library == Library::runtime ? Layers::runtime
                       : library == Library::nccl    ? Layers::nccl
                                                     : Layers::hip;
    return (static_cast<unsigned>(layers) & static_cast<unsigned>(one)) != 0;
}

bool serves(const Program& program, const Probe& probe)
{
    return includes(program.of, probe.library) && program.calls.has(probe.row);
}

std::vector<Probe> probes_of(std::span<const Program> programs)
{
    std::vector<Probe> all;
    for (const Library library : {Library::driver, Library::runtime, Library::nccl, Library::hip}) {
        std::vector<probe_kind> kinds;
        for (int kind = 0; kind < KINDS; kind++)
            if (std::ranges::any_of(programs, [&](const Program& program) {
                    return includes(program.of, library) && program.calls.has_kind(kind);
                }))
                kinds.push_back(static_cast<probe_kind>(kind));
        for (Probe& probe : probes(library, kinds))
            if (std::ranges::any_of(programs, [&](const Program& program) { return serves(program, probe); }))
                all.push_back(std::move(probe));
    }
    return all;
}

} // namespace

ProbePlan plan_probes(std::span<const Program> programs)
{
    ProbePlan plan{.probes = probes_of(programs), .hooks = {}};
    for (const Program& program : programs) {
        auto hook = std::ranges::find(plan.hooks, program.name, &Hook::program);
        if (hook == plan.hooks.end())
            hook = plan.hooks.insert(hook, {std::string(program.name),
                                            program.returns,
                                            {},
                                            program.always,
                                            program.without,
                                            program.sampled,
                                            program.instead_of});
        const auto general = std::ranges::find(plan.hooks, program.instead_of, &Hook::program);
        for (unsigned i = 0; i < plan.probes.size(); i++)
            if (serves(program, plan.probes[i]) && std::ranges::find(hook->probes, i) == hook->probes.end()) {
                hook->probes.push_back(i);
                if (general != plan.hooks.end())
                    std::erase(general->probes, i);
            }
    }
    std::erase_if(plan.hooks, [](const Hook& hook) { return hook.probes.empty(); });
    return plan;
}

} // namespace gpusnoop
