// SPDX-License-Identifier: Apache-2.0
#include "attach/look_queue.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

using namespace std::chrono_literals;

constexpr LookQueue::Clock::duration at_once = 500ms;

} // namespace

void LookQueue::add(pid_t pid, Clock::time_point now)
{
    due_.try_emplace(pid, now + std::max(taken_.used(pid, now) - at_once, Clock::duration::zero()) * share);
}

std::optional<pid_t> LookQueue::next(Clock::time_point now)
{
    const auto next = std::ranges::find_if(due_, [now](const auto& entry) { return entry.second <= now; });
    if (next == due_.end())
        return std::nullopt;
    const pid_t pid = next->first;
    due_.erase(next);
    return pid;
}

void LookQueue::looked(pid_t pid, Clock::duration took, Clock::time_point now)
{
    taken_.use(pid, took, now);
}

} // namespace gpusnoop
