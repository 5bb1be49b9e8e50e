// SPDX-License-Identifier: Apache-2.0
// Probes on every process in place of those on single ones.
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

// Links and perf events for one process name a task, not a number: that of the main thread, which has exited.
void Attacher::main_thread_replaced(pid_t pid)
{
    if (!attached_to(pid) || !attach_without_main_thread(pid))
        return;
    targets_.complain(fmt::format("process {}: another thread than the main one executed a program: its calls until it "
                                  "got probes again are not counted",
                                  pid));
}

// Probes for one process go into the memory of the thread that the link or perf event names (uprobe_multi_link_filter()
// in kernel/trace/bpf_trace.c, __uprobe_perf_filter() in kernel/trace/trace_uprobe.c), and an exited thread has none. A
// link can name the main thread only (46ba0e49b642), and whichever thread a perf event names may exit. So the probes
// are for every process. Returns false where they must not be.
bool Attacher::attach_without_main_thread(pid_t pid)
{
    if (!options_.may_attach_system_wide()) {
        if (without_main_thread_.insert(pid).second)
            targets_.complain(fmt::format("process {}: its main thread has exited, so this kernel cannot limit probes "
                                          "to the process; on all processes, return probes would kill those under "
                                          "seccomp: some or all of its calls are not counted",
                                          pid));
        return false;
    }
    verbose(fmt::format("process {}: its main thread has exited: every process gets the probes", pid));
    const bool had_probes = attached_to(pid);
    attach_system_wide();
    // The first call takes a perf event's breakpoint away that is no longer for its memory (uprobe_perf_func()).
    if (had_probes && options_.tier > Tier::multi)
        targets_.complain(
            fmt::format("process {}: its probes ended with its main thread; its calls until every process "
                        "got probes are not counted",
                        pid));
    return true;
}

// The kernel checks the process against each attachment of a probe, so many attachments cost more than one for all.
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
