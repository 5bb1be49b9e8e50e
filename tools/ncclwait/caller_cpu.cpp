// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/caller_cpu.hpp"

namespace gpusnoop {
namespace {

constexpr size_t callers_max = 4096;

std::optional<CpuShare> share_of(const Caller& caller)
{
    return cpu_share(static_cast<pid_t>(caller.first.pid), static_cast<pid_t>(caller.second));
}

} // namespace

void CallerCpu::meet(const Caller& caller, uint64_t now_ns)
{
    if (callers_.contains(caller) || callers_.size() >= callers_max)
        return;
    if (const auto share = share_of(caller))
        callers_[caller] = {.first = {*share, now_ns}, .last = {*share, now_ns}};
}

void CallerCpu::look(std::span<const Caller> callers, uint64_t now_ns)
{
    for (const Caller& caller : callers)
        meet(caller, now_ns);
    for (auto& [caller, known] : callers_) {
        const auto share = known.ended ? std::nullopt : share_of(caller);
        // Less than before: another thread has its number.
        known.ended = !share || share->turns < known.last.share.turns;
        if (!known.ended)
            known.last = {*share, now_ns};
    }
}

std::optional<CallerCpu::Share> CallerCpu::of(const Caller& caller) const
{
    const auto found = callers_.find(caller);
    if (found == callers_.end() || found->second.last.ns == found->second.first.ns)
        return std::nullopt;
    const auto& [first, last, ended] = found->second;
    return Share{.covered_ns = last.ns - first.ns,
                 .used_ns = last.share.used_ns - first.share.used_ns,
                 .waited_ns = last.share.waited_ns - first.share.waited_ns};
}

void CallerCpu::begin_interval()
{
    std::erase_if(callers_, [](const auto& item) { return item.second.ended; });
    for (auto& [caller, known] : callers_)
        known.first = known.last;
}

} // namespace gpusnoop
