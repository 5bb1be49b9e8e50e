// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/wait_stacks.hpp"

#include "code/inside_search.hpp"

#include <algorithm>
#include <set>

namespace gpusnoop {
namespace {

constexpr unsigned tries_max = 3; // of a thread that runs: its registers may be of one moment, its stack of another

bool is_wanted(const Waiting::Part& part)
{
    return part.waiting && !part.earlier && part.key.stack < 0 && part.elapsed_ns >= LONG_WAIT_NS;
}

} // namespace

WaitStacks::WaitStacks(std::span<const Probe> probes, ThreadRegisters& registers, FoundStacks& stacks)
    : symbols_(symbols_of_waits(probes, true, true)), stacks_(stacks), registers_(registers),
      reader_({.serve =
                   [this](Helper::Task& task) {
                       InsideSearch search(symbols_); // makes a file in memory, which the sandbox forbids
                       enter_sandbox(process_reading_sandbox(InsideSearch::memory_bytes));
                       search.serve(task);
                   },
               .apply = [this](const Message& message) { return apply(message); },
               .restarted =
                   [this] {
                       asked_.clear();
                       for (auto& [thread, wait] : waits_)
                           wait.asked = false;
                   },
               .consequence = "the stacks of its waits that go on are not known"})
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
        if (wait.stack < 0 && !wait.asked && wait.tries < tries_max && !asked_.contains(thread.first))
            processes.insert(thread.first);
    std::map<pid_t, InsideQuestion> questions;
    for (const thread_registers& found : registers_.of(processes)) {
        const auto pid = static_cast<pid_t>(found.process);
        const auto wait = waits_.find({pid, found.thread});
        if (wait == waits_.end() || wait->second.stack >= 0 || wait->second.tries == tries_max)
            continue;
        InsideQuestion& question = questions.try_emplace(pid, InsideQuestion{.pid = found.process}).first->second;
        if (question.threads.size() == InsideQuestion::threads_max)
            continue;
        question.threads.push_back(question_of(found));
    }
    for (const auto& [pid, question] : questions) {
        if (!reader_.post(pid, message_of(question)))
            continue;
        for (const InsideQuestion::Thread& thread : question.threads) {
            Wait& wait = waits_.at({pid, thread.tid});
            wait.asked = true;
            wait.tries++;
            asked_[pid].push_back(thread.tid);
        }
    }
}

bool WaitStacks::apply(const Message& message)
{
    const auto answer = read_message<InsideAnswer>(message.bytes);
    const auto asked = answer ? asked_.extract(static_cast<pid_t>(answer->pid)) : decltype(asked_)::node_type();
    if (!asked || asked.mapped().size() != answer->calls.size())
        return false;
    for (size_t i = 0; i < answer->calls.size(); i++) {
        const InsideCall& call = answer->calls[i];
        const auto known = waits_.find({asked.key(), asked.mapped()[i]});
        if (known == waits_.end() || !known->second.asked) // another wait's, by now
            continue;
        known->second.asked = false;
        if (!call.probe || call.callers.empty())
            continue;
        known->second.stack = stacks_.number_of(call.callers);
        known->second.caller = call.callers.front();
    }
    return true;
}

} // namespace gpusnoop
