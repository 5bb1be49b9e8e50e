// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/wait_stacks.hpp"

#include <algorithm>
#include <set>

namespace gpusnoop {
namespace {

// Maximum number of requests for the stack of a wait. A request may fail, because the registers and stack of a running
// thread are not read at the same moment.
constexpr unsigned tries_max = 3;

bool is_wanted(const Waiting::Part& part)
{
    return part.waiting && !part.earlier && part.key.stack < 0 && part.elapsed_ns >= LONG_WAIT_NS;
}

} // namespace

WaitStacks::WaitStacks(std::span<const Probe> probes, ThreadRegisters& registers, UnwoundStacks& stacks)
    : stacks_(stacks), registers_(registers),
      reader_(symbols_of_waits(probes, true, true), "the stacks of its unfinished waits are unknown",
              [this](pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls) {
                  apply(pid, tids, calls);
              })
{}

void WaitStacks::add_to(std::span<Waiting::Part> parts)
{
    reader_.poll();
    std::map<Thread, Wait> before = std::exchange(waits_, {});
    for (Waiting::Part& part : parts) {
        if (!is_wanted(part))
            continue;
        const Thread thread{static_cast<pid_t>(part.key.image.pid), part.key.tid};
        Wait wait{.since_ns = part.since_ns};
        if (const auto known = before.find(thread); known != before.end() && known->second.since_ns == part.since_ns)
            wait = known->second;
        if (wait.stack >= 0) {
            part.key.stack = wait.stack;
            part.key.caller = wait.caller;
        }
        waits_.insert_or_assign(thread, wait);
    }
    ask();
}

void WaitStacks::ask()
{
    std::set<pid_t> processes;
    for (const auto& [thread, wait] : waits_)
        if (wait.stack < 0 && wait.tries < tries_max && !reader_.is_pending(thread.first))
            processes.insert(thread.first);
    std::map<pid_t, PendingCallsQuestion> questions;
    for (const thread_registers& found : registers_.read(processes)) {
        const auto pid = static_cast<pid_t>(found.process);
        const auto wait = waits_.find({pid, found.thread});
        if (wait == waits_.end() || wait->second.stack >= 0 || wait->second.tries == tries_max)
            continue;
        PendingCallsQuestion& question =
            questions.try_emplace(pid, PendingCallsQuestion{.pid = found.process}).first->second;
        if (question.threads.size() == PendingCallsQuestion::threads_max)
            continue;
        question.threads.push_back(question_of(found));
    }
    for (const auto& [pid, question] : questions) {
        if (!reader_.ask(question))
            continue;
        for (const PendingCallsQuestion::Thread& thread : question.threads) {
            Wait& wait = waits_.at({pid, thread.tid});
            wait.asked = true;
            wait.tries++;
        }
    }
}

void WaitStacks::apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)
{
    for (size_t i = 0; i < calls.size(); i++) {
        const PendingCall& call = calls[i];
        const auto known = waits_.find({pid, tids[i]});
        if (known == waits_.end() || !known->second.asked) // the thread has begun another wait since the request
            continue;
        known->second.asked = false;
        if (!call.probe || call.callers.empty())
            continue;
        known->second.stack = stacks_.number_of(call.callers);
        known->second.caller = call.callers.front();
    }
}

} // namespace gpusnoop
