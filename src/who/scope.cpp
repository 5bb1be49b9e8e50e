// SPDX-License-Identifier: Apache-2.0
#include "who/scope.hpp"

#include "base/error.hpp"
#include "proc/process.hpp"
#include "who/cuda_users.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {

Scope::Scope(const Options& options) : pids_(options.pids), grows_(!options.program.empty())
{
    if (options.tid) {
        auto pid = process_of_thread(options.tid);
        if (!pid)
            throw Error(fmt::format("there is no thread {}", options.tid), "list all threads with: ps -eLf");
        pids_ = {*pid};
    }
    std::ranges::sort(pids_);
    pids_.erase(std::unique(pids_.begin(), pids_.end()), pids_.end());
    for (pid_t pid : pids_) {
        Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
            throw Error(fmt::format("cannot watch process {}: {}", pid, errno_text(errno)));
        auto leader = process_of_thread(pid);
        if (leader && *leader != pid)
            throw Error(fmt::format("{} is a thread of process {}, not a process", pid, *leader),
                        fmt::format("use -p {} for the whole process, -t {} for this thread", *leader, pid));
        if (!fd || !leader)
            throw Error(fmt::format("there is no process {}", pid),
                        "use the host's pid: inside a container, the same process has a different one");
        pidfds_.emplace(pid, std::move(fd));
    }
    if (!options.cgroup.empty())
        cgroup_.emplace(options.cgroup, options.host_root);
    else if (!options.comm.empty() && pids_.empty())
        select_by_name(options.comm);
}

// Traces all processes if no process matches yet, so that no call of the first match is lost.
void Scope::select_by_name(const std::string& part)
{
    named_.emplace(part).rescan();
    if (cuda_users(processes()).pids.empty())
        named_.reset();
}

bool Scope::includes(pid_t pid) const
{
    if (!pids_.empty())
        return std::ranges::binary_search(pids_, pid);
    if (named_)
        return named_->contains(pid);
    return !cgroup_ || std::ranges::binary_search(cgroup_->members(), pid);
}

void Scope::join(pid_t pid)
{
    const auto at = std::ranges::lower_bound(pids_, pid);
    if (at == pids_.end() || *at != pid)
        pids_.insert(at, pid);
}

void Scope::leave(pid_t pid)
{
    std::erase(pids_, pid);
}

bool Scope::on_exit(pid_t pid)
{
    pidfds_.erase(pid);
    if (pidfds_.empty())
        return false;
    std::erase(pids_, pid);
    return true;
}

std::vector<pid_t> Scope::processes() const
{
    if (named_)
        return {named_->pids().begin(), named_->pids().end()};
    return !pids_.empty() ? pids_ : cgroup_ ? cgroup_->members() : all_processes();
}

} // namespace gpusnoop
