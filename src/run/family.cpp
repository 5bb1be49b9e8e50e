// SPDX-License-Identifier: Apache-2.0
#include "run/family.hpp"

#include "attach/attach.hpp"
#include "base/error.hpp"
#include "proc/process.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
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
    for (const pid_t pid : descendants_.forked(child, parent))
        adopt(pid);
    // It has what its parent had mapped.
    if (attacher_ && descendants_.contains(child) && (strangers_.erase(child) || attacher_->attached_to(parent)))
        attacher_->look_at(child);
}

void Family::adopt(pid_t pid)
{
    const uint8_t yes = 1;
    if (bpf_map_update_elem(target_pids_, &pid, &yes, BPF_ANY) && !std::exchange(limit_told_, true))
        warn(fmt::format("more than {} processes of the program live at once: some are not traced", targets_max));
    scope_.join(pid);
    if (attacher_ && strangers_.erase(pid))
        attacher_->look_at(pid);
}

void Family::stranger_mapped(pid_t pid)
{
    strangers_.insert(pid);
}

void Family::exited(pid_t pid)
{
    if (pid != first_ && descendants_.contains(pid) && !let_go(pid))
        leaving_.insert(pid);
}

// False while it has its memory.
bool Family::let_go(pid_t pid)
{
    if (has_memory(pid))
        return false;
    bpf_map_delete_elem(target_pids_, &pid);
    if (attacher_)
        attacher_->forget(pid);
    descendants_.left(pid);
    scope_.leave(pid);
    return true;
}

void Family::tick()
{
    std::erase_if(leaving_, [this](pid_t pid) { return let_go(pid); });
    descendants_.forget_others();
    strangers_.clear();
}

void Family::look_again()
{
    for (const pid_t pid : all_processes())
        if (!descendants_.contains(pid))
            if (const auto parent = parent_of(pid))
                forked(pid, *parent);
}

} // namespace gpusnoop
