// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/caller_cpu.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr size_t max_tracked_callers = 4096;

std::optional<ThreadCpuTime> share_of(const Caller& caller)
{
    return thread_cpu_time(static_cast<pid_t>(caller.first.pid), static_cast<pid_t>(caller.second));
}

} // namespace

void CallerCpu::meet(const Caller& caller, uint64_t now_ns)
{
    if (callers_.contains(caller) || callers_.size() >= max_tracked_callers)
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

bool IdleLooks::is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns)
{
    Silence& silence = silences_[communicator];
    if (silence.since_ns != since_ns || waits)
        silence = {.since_ns = since_ns};
    silence.asked = true;
    if (now_ns < silence.until_ns)
        return false;
    if (silence.looked++ < looks)
        return true;
    silence.looked = 0;
    silence.pause_ns = std::clamp(silence.pause_ns * 2, first_pause_ns, longest_pause_ns);
    silence.until_ns = now_ns + silence.pause_ns;
    return false;
}

void IdleLooks::end_round()
{
    std::erase_if(silences_, [](const auto& item) { return !item.second.asked; });
    for (auto& [communicator, silence] : silences_)
        silence.asked = false;
}

} // namespace gpusnoop
