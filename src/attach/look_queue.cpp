// SPDX-License-Identifier: Apache-2.0
#include "attach/look_queue.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr LookQueue::Clock::duration at_once = 500ms;
constexpr int share = 20; // behind that, one part of so many of the time

} // namespace

LookQueue::Clock::duration LookQueue::used(const Account& account, Clock::time_point now)
{
    return std::max(account.used - (now - account.as_of) / share, Clock::duration::zero());
}

void LookQueue::add(pid_t pid, Clock::time_point now)
{
    const auto account = accounts_.find(pid);
    const auto used_now = account != accounts_.end() ? used(account->second, now) : Clock::duration::zero();
    due_.try_emplace(pid, now + std::max(used_now - at_once, Clock::duration::zero()) * share);
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
    std::erase_if(accounts_, [now](const auto& entry) { return used(entry.second, now) == Clock::duration::zero(); });
    const auto account = accounts_.try_emplace(pid, Account{{}, now}).first;
    account->second = {used(account->second, now) + took, now};
}

} // namespace gpusnoop
