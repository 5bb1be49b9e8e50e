// SPDX-License-Identifier: Apache-2.0
#include "reader/blame.hpp"

#include "base/error.hpp"
#include "proc/process.hpp"

#include <fmt/format.h>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr auto recheck_interval = 1s; // how often to check whether the pid of a blocked process was reused
// Maximum number of entries in each table. When blocked_ is full, exited processes are removed from it. When forgiven_
// or users_ is full, it is cleared. After forgiven_ was cleared, one more crash per file is ignored.
constexpr size_t blocked_max = 4096;
constexpr size_t forgiven_max = 4096;
constexpr size_t users_max = 1 << 14;
// is_slow() returns true for a user whose files have blocked helpers for slow_user. Once files of all users together
// have blocked helpers for slow_users, it returns true for every user with slow files.
constexpr Blame::Clock::duration slow_user = 2s, slow_users = 4s;

// Ignores short times, because most files are read within a few milliseconds.
Blame::Clock::duration slow_part(Blame::Clock::duration took)
{
    return took > 250ms ? took : Blame::Clock::duration::zero();
}

} // namespace

Blame::Blame(std::string consequence, std::string user_consequence, std::function<void(std::string)> report)
    : consequence_(std::move(consequence)), user_consequence_(std::move(user_consequence)), report_(std::move(report))
{
    if (!report_)
        report_ = [](const std::string& text) { warn(text); };
}

uint64_t Blame::user_of(pid_t process)
{
    if (users_.size() >= users_max)
        users_.clear();
    if (const auto user = owner_of(process))
        return users_[process] = *user;
    const auto known = users_.find(process);
    return known != users_.end() ? known->second : 0;
}

bool Blame::is_blocked(pid_t process)
{
    if (process == 0 || (blocked_.empty() && strikes_.empty()))
        return false;
    const auto now = Clock::now();
    if (const auto known = blocked_.find(process); known != blocked_.end()) {
        if (now - known->second.checked < recheck_interval)
            return true;
        known->second.checked = now;
        const uint64_t start = start_time_ns(process);
        // 0 if the process has exited; it stays blocked, because questions about it may still be sent
        if (start == 0 || start == known->second.start)
            return true;
        blocked_.erase(known);
    }
    const auto strikes = strikes_.find(user_of(process));
    if (strikes == strikes_.end() || strikes->second < strikes_max)
        return false;
    block(process);
    return true;
}

bool Blame::forgive(pid_t process, const FileKey& file)
{
    if (forgiven_.size() >= forgiven_max)
        forgiven_.clear();
    return forgiven_.emplace(process, file).second;
}

bool Blame::block(pid_t process)
{
    if (blocked_.size() >= blocked_max)
        std::erase_if(blocked_, [](const auto& entry) { return !is_alive(entry.first); });
    return blocked_.insert_or_assign(process, Blocked{start_time_ns(process), Clock::now()}).second;
}

void Blame::strike(pid_t process, uint64_t user, std::string_view what, std::string_view why)
{
    if (is_alive(process))
        report_(what.empty() ? fmt::format("process {}: {}; {}", process, why, consequence_)
                             : fmt::format("{} (process {}): {}; {}", what, process, why, consequence_));
    if (++strikes_[user] == strikes_max)
        report_(
            fmt::format("files of one user (of process {}, most recently) made {} helper processes hang or crash: {}",
                        process, strikes_max, user_consequence_.empty() ? consequence_ : user_consequence_));
}

void Blame::blocked_helper(uint64_t user, Clock::duration took, Clock::time_point now)
{
    if (slow_part(took) == Clock::duration::zero())
        return;
    slow_of_user_.use(user, took, now);
    slow_of_all_.use(0, took, now);
}

bool Blame::is_slow(uint64_t user, Clock::time_point now, Clock::duration so_far) const
{
    const auto own = slow_part(so_far) + slow_of_user_.used(user, now);
    const auto all = slow_part(so_far) + slow_of_all_.used(0, now);
    return own > slow_user || (own > Clock::duration::zero() && all > slow_users);
}

} // namespace gpusnoop
