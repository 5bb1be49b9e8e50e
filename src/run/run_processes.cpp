// SPDX-License-Identifier: Apache-2.0
// What processes do while a run traces: they map libraries, fork, execute other programs, and exit.
#include "run/run.hpp"

#include <algorithm>
#include <set>

namespace gpusnoop {

// Before the first look, so that nothing that appears meanwhile is missed.
void Run::watch_mappings()
{
    if (mapping_watch_)
        return;
    mapping_watch_.emplace(MappingWatch::Handlers{
        .mapped = [this](pid_t pid, std::string_view path, uint64_t device,
                         uint64_t inode) { library_mapped(pid, path, device, inode); },
        .forked = [this](pid_t pid, pid_t parent) { members_->forked(pid, parent); },
        .exited = [this](pid_t pid, pid_t tid) { thread_exited(pid, tid); },
        .on_exec =
            [this](pid_t pid, uint64_t time_ns) {
                if (attacher_)
                    attacher_->left(pid);
                if (exits_.executed(pid) && attacher_)
                    attacher_->main_thread_replaced(pid);
                if (loop_)
                    ring_->drain(); // a program that called and was replaced at once is to be known by then
                tool_.on_exec(pid, time_ns);
            },
        .named = [this](pid_t pid, std::string_view name, bool is_exec) { members_->named(pid, name, is_exec); },
        .lost =
            [this] {
                std::set<pid_t> ended = tool_.exits_missed();
                ended.merge(members_->exits_missed());
                ended.merge(exits_.missed());
                std::ranges::for_each(ended, [this](pid_t pid) { on_exit(pid); });
                members_->look_again();
            },
    });
}

void Run::library_mapped(pid_t pid, std::string_view path, uint64_t device, uint64_t inode)
{
    if (attacher_ && attacher_->targets().interesting(path, device, inode))
        members_->mapped(pid);
}

void Run::thread_exited(pid_t pid, pid_t tid)
{
    const ProcessExits::Exit exit = exits_.thread_exited(pid, tid);
    if (exit == ProcessExits::Exit::process)
        on_exit(pid);
    else if (exit == ProcessExits::Exit::main_thread && attacher_)
        attacher_->main_thread_exited(pid);
    else if (exit == ProcessExits::Exit::replaced && attacher_)
        attacher_->main_thread_replaced(pid);
}

void Run::on_exit(pid_t pid)
{
    if (attacher_)
        attacher_->left(pid);
    // The end of the last one asked for ends the run: what it held is shown as it was.
    if (scope_.pidfds().size() != 1 || !scope_.pidfds().contains(pid))
        tool_.on_exit(pid);
    members_->exited(pid);
}

} // namespace gpusnoop
