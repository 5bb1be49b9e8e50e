// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "proc/process.hpp"
#include "run/run.hpp"
#include "run/started_program.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>
#include <vector>

namespace gpusnoop {

// Handlers of gate events. At the gate, a process of the started program waits until the file that it maps has probes.

void Run::watch_gate()
{
    if (attacher_ && program_ && program_->gate())
        loop_->watch(program_->gate()->descriptor(), [this] { serve_gate(); });
}

void Run::serve_gate()
{
    MappingGate& gate = *program_->gate();
    std::vector<MappingGate::Event> events;
    while (auto event = gate.next())
        events.push_back(std::move(*event));
    mapping_watch_->drain(); // reads pending fork events, so that scope_ includes the waiting processes
    for (MappingGate::Event& event : events)
        serve(std::move(event));
    attach_waiting();
    if (!gate.closed())
        return;
    loop_->remove(gate.descriptor());
    if (!std::exchange(gate_explained_, true))
        warn("the gatekeeper process (gpusnoop-gate) has exited, so the program is not paused while probes are "
             "attached to a new library: its calls in the first milliseconds after loading the library are missed");
}

void Run::serve(MappingGate::Event event)
{
    using enum MappingGate::What;
    switch (event.what) {
    case mapping:
    case exec: {
        const auto pid = process_of_thread(event.tid);
        if (pid && scope_.includes(*pid))
            attacher_->scan_held({event.id, *pid, std::move(event.path), std::move(event.file)});
        else
            program_->gate()->release(event.id);
        break;
    }
    case expired:
        warn(fmt::format(
            "thread {} waited 10 s for the probes of {} and continues without them: its first calls may be lost",
            event.tid, event.path.empty() ? "its program" : event.path));
        break;
    case refused:
        warn(fmt::format("cannot pause the program while probes are attached to a new library (seccomp: {}), so its "
                         "calls in the first milliseconds after loading the library are missed, unless the driver is "
                         "in a standard folder; pausing needs CAP_SYS_ADMIN and fails if another seccomp listener is "
                         "installed",
                         errno_text(event.error)));
        [[fallthrough]];
    case ended:
        gate_explained_ = true;
    }
}

// Handlers of process events during a run: mappings, forks, execs, renames and exits.

// Called before the first scan, so that processes that start during the scan are not missed.
void Run::watch_mappings()
{
    if (mapping_watch_)
        return;
    mapping_watch_.emplace(MappingWatch::Handlers{
        .mapped = [this](pid_t pid, std::string_view path, uint64_t device,
                         uint64_t inode) { library_mapped(pid, path, device, inode); },
        .forked = [this](pid_t pid, pid_t parent) { members_->forked(pid, parent); },
        .exited = [this](pid_t pid, pid_t tid) { thread_exited(pid, tid); },
        .on_exec = [this](pid_t pid, uint64_t time_ns) { on_exec(pid, time_ns); },
        .named = [this](pid_t pid, std::string_view name, bool is_exec) { members_->named(pid, name, is_exec); },
        .lost =
            [this] {
                std::set<pid_t> ended = tool_.exits_missed();
                ended.merge(members_->exits_missed());
                ended.merge(exits_.drain_unreported());
                std::ranges::for_each(ended, [this](pid_t pid) { on_exit(pid); });
                members_->rescan();
            },
    });
}

void Run::library_mapped(pid_t pid, std::string_view path, uint64_t device, uint64_t inode)
{
    if (attacher_ && attacher_->targets().may_be_cuda(path, device, inode))
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

void Run::on_exec(pid_t pid, uint64_t time_ns)
{
    if (attacher_)
        attacher_->remove_user(pid);
    if (exits_.executed(pid) && attacher_)
        attacher_->main_thread_replaced(pid);
    if (loop_)
        ring_->drain(); // reads the calls that the process made just before its exec
    if (plan_.hooks.on_exec)
        plan_.hooks.on_exec(pid, time_ns);
    tool_.on_exec(pid, time_ns);
}

void Run::on_exit(pid_t pid)
{
    if (attacher_)
        attacher_->remove_user(pid);
    // The exit of the last target ends the run. Keeps the state of that target, because the last report shows the
    // memory that it held.
    if (scope_.pidfds().size() != 1 || !scope_.pidfds().contains(pid)) {
        if (plan_.hooks.on_exit)
            plan_.hooks.on_exit(pid);
        tool_.on_exit(pid);
    }
    members_->exited(pid);
}

} // namespace gpusnoop
