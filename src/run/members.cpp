// SPDX-License-Identifier: Apache-2.0
#include "run/members.hpp"

#include "attach/attach.hpp"
#include "base/error.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {

Family::Family(Scope& scope, const bpf_object* object, Attacher* attacher)
    : scope_(scope), attacher_(attacher), target_pids_(bpf_object__find_map_fd_by_name(object, "target_pids")),
      first_(scope.pids().front()), descendants_(first_)
{}

void Family::make_room(bpf_object* object)
{
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "target_pids"), targets_max);
}

void Family::forked(pid_t child, pid_t parent)
{
    for (const pid_t pid : descendants_.on_fork(child, parent))
        adopt(pid);
    // The child has inherited its parent's mappings.
    if (attacher_ && descendants_.contains(child) && (strangers_.erase(child) || attacher_->attached_to(parent)))
        attacher_->scan(child);
}

void Family::adopt(pid_t pid)
{
    const uint8_t yes = 1;
    if (bpf_map_update_elem(target_pids_, &pid, &yes, BPF_ANY) && !std::exchange(warned_limit_, true))
        warn(fmt::format("the program has more than {} processes at once: some are not traced", targets_max));
    scope_.join(pid);
    if (attacher_ && strangers_.erase(pid))
        attacher_->scan(pid);
}

void Family::stranger_mapped(pid_t pid)
{
    strangers_.insert(pid);
}

void Family::exited(pid_t pid)
{
    if (pid != first_ && descendants_.contains(pid) && !forget_if_exited(pid))
        leaving_.insert(pid);
}

// Returns false while the process still has its memory.
bool Family::forget_if_exited(pid_t pid)
{
    if (has_memory(pid))
        return false;
    bpf_map_delete_elem(target_pids_, &pid);
    if (attacher_)
        attacher_->forget(pid);
    descendants_.remove(pid);
    scope_.leave(pid);
    return true;
}

void Family::tick()
{
    std::erase_if(leaving_, [this](pid_t pid) { return forget_if_exited(pid); });
    descendants_.drop_unmatched();
    strangers_.clear();
}

void Family::rescan()
{
    for (const pid_t pid : all_processes())
        if (!descendants_.contains(pid))
            if (const auto parent = parent_of(pid))
                forked(pid, *parent);
}

Members::Members(Scope& scope, const bpf_object* object, Attacher* attacher, bool started)
    : scope_(scope), attacher_(attacher)
{
    if (started)
        family_.emplace(scope, object, attacher);
}

void Members::mapped(pid_t pid)
{
    if (scope_.includes(pid))
        attacher_->scan(pid);
    else if (family_)
        family_->stranger_mapped(pid);
}

// A child is in scope if its parent is, and inherits its parent's mappings.
void Members::forked(pid_t pid, pid_t parent)
{
    if (family_)
        return family_->forked(pid, parent);
    if (attacher_ && scope_.named() && scope_.named()->on_fork(pid))
        attacher_->scan(pid);
    if (attacher_ && scope_.pids().empty() && !scope_.named() && !attacher_->is_system_wide() &&
        attacher_->attached_to(parent) && scope_.includes(pid))
        attacher_->scan(pid);
}

// A process that enters the scope by being renamed has mappings that were not scanned yet.
void Members::named(pid_t pid, std::string_view name, bool is_exec)
{
    if (!attacher_ || !scope_.named())
        return;
    if (is_exec && scope_.named()->on_exec(pid, name))
        attacher_->forget(pid);
    else if (scope_.named()->on_rename(pid, name))
        attacher_->scan(pid);
}

void Members::exited(pid_t pid)
{
    if (family_)
        family_->exited(pid);
    if (attacher_ && scope_.pids().empty() &&
        (attacher_->attached_to(pid) || (scope_.named() && scope_.named()->contains(pid))))
        leaving_.insert(pid);
}

void Members::tick()
{
    if (attacher_) {
        forget_leaving();
        find_moved_in();
    }
    if (family_)
        family_->tick();
}

void Members::forget_leaving()
{
    std::erase_if(leaving_, [this](pid_t pid) {
        if (has_memory(pid))
            return false; // since 6.16, do_exit() reports the exit before it releases the memory
        attacher_->forget(pid);
        if (scope_.named())
            scope_.named()->remove(pid);
        return true;
    });
}

// Finds processes that were moved into the cgroup. Other new members are noticed when they are forked or map a library.
void Members::find_moved_in()
{
    if (!scope_.cgroup())
        return;
    std::set<pid_t> members;
    for (pid_t pid : scope_.processes()) {
        members.insert(pid);
        if (!members_.contains(pid))
            attacher_->scan(pid);
    }
    members_ = std::move(members);
}

std::set<pid_t> Members::exits_missed() const
{
    std::set<pid_t> ended;
    std::ranges::copy_if(members_, std::inserter(ended, ended.end()), [](pid_t pid) { return !running_thread(pid); });
    return ended;
}

void Members::rescan()
{
    if (family_)
        family_->rescan();
    if (scope_.named())
        scope_.named()->rescan();
    if (attacher_)
        attacher_->scan_all();
}

std::vector<pid_t> Members::users() const
{
    std::vector<pid_t> all;
    std::ranges::copy_if(attacher_->users(), std::back_inserter(all),
                         [this](pid_t pid) { return scope_.includes(pid); });
    return all;
}

} // namespace gpusnoop
