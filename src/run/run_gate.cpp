// SPDX-License-Identifier: Apache-2.0
// Processes of the started program that wait to map a file until it has its probes.
#include "base/error.hpp"
#include "proc/process.hpp"
#include "run/run.hpp"
#include "run/started_program.hpp"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace gpusnoop {

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
    mapping_watch_->drain(); // of the processes that wait, all forks are known then
    for (MappingGate::Event& event : events)
        serve(std::move(event));
    attach_waiting();
    if (!gate.closed())
        return;
    loop_->remove(gate.descriptor());
    if (!std::exchange(gate_explained_, true))
        warn("the gatekeeper process (gpusnoop-gate) has ended, so the program is not held while a library gets its "
             "probes: calls in the first milliseconds after a library is mapped are lost");
}

void Run::serve(MappingGate::Event event)
{
    using enum MappingGate::What;
    switch (event.what) {
    case mapping:
    case exec: {
        const auto pid = process_of_thread(event.tid);
        if (pid && scope_.includes(*pid))
            attacher_->look_at_held({event.id, *pid, std::move(event.path), std::move(event.file)});
        else
            program_->gate()->release(event.id);
        break;
    }
    case expired:
        warn(fmt::format("thread {} waited 10 s for the probes of {} and goes on without: its first calls may be lost",
                         event.tid, event.path.empty() ? "its program" : event.path));
        break;
    case refused:
        warn(fmt::format("cannot hold the program while a library gets its probes (seccomp: {}): calls in the first "
                         "milliseconds after a library is mapped are lost, except with drivers in the usual folders; "
                         "holding needs CAP_SYS_ADMIN and no other seccomp listener",
                         errno_text(event.error)));
        [[fallthrough]];
    case ended:
        gate_explained_ = true;
    }
}

} // namespace gpusnoop
