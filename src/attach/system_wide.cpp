// SPDX-License-Identifier: Apache-2.0
// Switch from per-process probes to system-wide probes.
#include "attach/attach.hpp"

#include "base/error.hpp"
#include "proc/threads.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop {

void Attacher::main_thread_exited(pid_t pid)
{
    if (attached_to(pid))
        scan(pid);
}

// The probes must be attached again, because links and perf events refer to a task, not to a process id. The existing
// ones refer to the former main thread, which has exited.
void Attacher::main_thread_replaced(pid_t pid)
{
    if (!attached_to(pid) || !attach_without_main_thread(pid))
        return;
    targets_.complain(fmt::format("process {}: a thread other than the main thread called exec; calls before the "
                                  "probes were attached again are not counted",
                                  pid));
}

// Makes the probes system-wide, because a process whose main thread has exited cannot have per-process probes. The
// kernel sets such probes in the memory of the task that the link or perf event refers to (uprobe_multi_link_filter()
// in kernel/trace/bpf_trace.c, __uprobe_perf_filter() in kernel/trace/trace_uprobe.c), and an exited thread has no
// memory. A link can refer only to the main thread (46ba0e49b642). A perf event can refer to any thread, but that
// thread may exit. Returns false if system-wide probes are unsafe.
bool Attacher::attach_without_main_thread(pid_t pid)
{
    if (!options_.may_attach_system_wide()) {
        if (without_main_thread_.insert(pid).second)
            targets_.complain(fmt::format("process {}: some or all of its calls are not counted: its main thread has "
                                          "exited, so only system-wide probes could trace it; they are not used, "
                                          "because on this kernel return probes kill processes under seccomp",
                                          pid));
        return false;
    }
    verbose(fmt::format("process {}: its main thread has exited; switching to system-wide probes", pid));
    const bool had_probes = attached_to(pid);
    attach_system_wide();
    // In the tiers tracefs and perf, the exit of the main thread disables the process's probes: at the next hit, the
    // kernel removes the breakpoint (uprobe_perf_func()).
    if (had_probes && options_.tier > Tier::multi)
        targets_.complain(fmt::format("process {}: its main thread exited, which disabled its probes; calls until the "
                                      "switch to system-wide probes are not counted",
                                      pid));
    return true;
}

// At each hit, the kernel checks the process against every attachment of the probe. So one system-wide attachment is
// cheaper than many per-process attachments.
void Attacher::attach_system_wide()
{
    std::set<CudaFile*> files;
    for (const auto& [key, attachment] : attachments_)
        if (!attachment.refused)
            files.insert(attachment.file);
    Links first = extract_links();
    switching_ = true;
    system_wide_ = true;
    paused_.clear();
    linker_.begin_second_attachment();
    options_.set_phase(ATTACH_PENDING);
    for (CudaFile* file : files)
        attach(file, 0);
    options_.set_phase(ATTACH_BOTH);
    detach(std::move(first));
    switching_ = false;
    if (!options_.filter_second)
        options_.set_phase(ATTACH_SECOND);
}

} // namespace gpusnoop
