// SPDX-License-Identifier: Apache-2.0
#include "attach/load_plan.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

const Hook* hook_of(const std::string& program, std::span<const Hook> hooks)
{
    for (const Hook& hook : hooks)
        for (std::string_view suffix : {"entry", "return", "session"})
            if (program == fmt::format("{}_{}", hook.program, suffix))
                return &hook;
    return nullptr;
}

} // namespace

std::vector<Hook> LoadPlan::hooks(std::vector<Hook> all) const
{
    for (const Hook& hook : all)
        if (leaves_out(hook.program))
            if (const auto general = std::ranges::find(all, hook.instead_of, &Hook::program); general != all.end())
                general->probes.insert(general->probes.end(), hook.probes.begin(), hook.probes.end());
    std::erase_if(all, [this](const Hook& hook) { return leaves_out(hook.program); });
    return all;
}

std::vector<std::string> LoadPlan::hooks_left_out(std::span<const Hook> all) const
{
    std::vector<std::string> hooks;
    for (const Hook& hook : all)
        if (leaves_out(hook.program))
            hooks.push_back(hook.program);
    return hooks;
}

std::vector<std::string> LoadPlan::programs_left_out() const
{
    std::vector<std::string> programs;
    for (const auto& [name, refusal] : left_out_)
        if (name == refusal.program)
            programs.push_back(name);
    return programs;
}

bool LoadPlan::step(const Refusal& refusal, std::span<const Hook> all)
{
    const Hook* of_hook = hook_of(refusal.program, all);
    if (!of_hook && !refusal.program.empty() && left_out_.emplace(refusal.program, refusal).second)
        return true;
    if (of_hook && !of_hook->instead_of.empty() && left_out_.emplace(of_hook->program, refusal).second)
        return true;
    if (!first_)
        first_ = refusal;
    if (!of_hook) // no other programs would be taken
        return false;
    if (!forced_ && tier_ != Tier::perf) {
        tier_ = static_cast<Tier>(static_cast<int>(tier_) + 1);
        return true;
    }
    const Hook* hook = hook_of(first_->program, all);
    if (hook->without.empty() || !left_out_.emplace(hook->program, *first_).second)
        return false;
    tier_ = best_;
    first_.reset();
    return true;
}

std::vector<std::string> LoadPlan::remarks(std::span<const Hook> all) const
{
    std::vector<std::string> remarks;
    if (tier_ != best_ && first_)
        remarks.push_back(
            fmt::format("attaching by {} instead of {}: {}", tier_name(tier_), tier_name(best_), first_->text()));
    for (const auto& [name, refusal] : left_out_) {
        const Hook* hook = hook_of(refusal.program, all);
        remarks.push_back(hook ? fmt::format("{}: {}", hook->without, refusal.text()) : refusal.text());
    }
    return remarks;
}

} // namespace gpusnoop
