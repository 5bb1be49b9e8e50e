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

void CallerCpu::track(const Caller& caller, uint64_t now_ns)
{
    if (callers_.contains(caller) || callers_.size() >= max_tracked_callers)
        return;
    if (const auto share = share_of(caller))
        callers_[caller] = {.first = {*share, now_ns}, .last = {*share, now_ns}};
}

void CallerCpu::read(std::span<const Caller> callers, uint64_t now_ns)
{
    for (const Caller& caller : callers)
        track(caller, now_ns);
    for (auto& [caller, known] : callers_) {
        const auto share = known.exited ? std::nullopt : share_of(caller);
        // If the number of time slices has dropped, the thread has exited, and a new thread has the same id.
        known.exited = !share || share->turns < known.last.share.turns;
        if (!known.exited)
            known.last = {*share, now_ns};
    }
}

std::optional<CallerCpu::Share> CallerCpu::of(const Caller& caller) const
{
    const auto found = callers_.find(caller);
    if (found == callers_.end() || found->second.last.ns == found->second.first.ns)
        return std::nullopt;
    const auto& [first, last, exited] = found->second;
    return Share{.covered_ns = last.ns - first.ns,
                 .used_ns = last.share.used_ns - first.share.used_ns,
                 .waited_ns = last.share.waited_ns - first.share.waited_ns};
}

void CallerCpu::begin_interval()
{
    std::erase_if(callers_, [](const auto& item) { return item.second.exited; });
    for (auto& [caller, known] : callers_)
        known.first = known.last;
}

bool IdleScans::is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns)
{
    Silence& silence = silences_[communicator];
    if (silence.since_ns != since_ns || waits)
        silence = {.since_ns = since_ns};
    silence.asked = true;
    if (now_ns < silence.until_ns)
        return false;
    if (silence.scanned++ < scans_in_a_row)
        return true;
    silence.scanned = 0;
    silence.pause_ns = std::clamp(silence.pause_ns * 2, first_pause_ns, longest_pause_ns);
    silence.until_ns = now_ns + silence.pause_ns;
    return false;
}

void IdleScans::end_round()
{
    std::erase_if(silences_, [](const auto& item) { return !item.second.asked; });
    for (auto& [communicator, silence] : silences_)
        silence.asked = false;
}

} // namespace gpusnoop
