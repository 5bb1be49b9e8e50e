// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/earlier_waits.hpp"

#include "base/clock.hpp"
#include "proc/process.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

constexpr unsigned full_scans = 8; // number of scans of all threads; later scans cover only threads that were found in
                                   // a wait
// A thread is taken to be in no wait after this many answers of the helper that found none. A single such answer may be
// wrong, because a running thread's registers and stack are not read at the same moment.
constexpr unsigned empty_answers_max = 3;
constexpr unsigned confirmations = 2;
constexpr size_t processes_max = 1024;
constexpr size_t threads_max = 1024; // limit of threads per process

} // namespace

EarlierWaits::EarlierWaits(std::span<const Probe> probes, bool driver, bool runtime, const Options& options,
                           ThreadRegisters& registers, UnwoundStacks& stacks)
    : probes_(probes), options_(options), stacks_(stacks), registers_(registers), started_ns_(clock_ns(CLOCK_BOOTTIME)),
      reader_(symbols_of_waits(probes, driver, runtime), "its waits from before tracing are unknown",
              [this](pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls) {
                  apply(pid, tids, calls);
              })
{}

std::set<pid_t> EarlierWaits::due(const std::vector<pid_t>& users)
{
    std::set<pid_t> all;
    for (const pid_t pid : users) {
        const auto known = processes_.find(pid);
        if (known == processes_.end()) {
            // A process that started after tracing began has been traced from its first call on.
            if (processes_.size() >= processes_max || start_time_ns(pid) > started_ns_)
                continue;
            processes_[pid].began_ns = clock_ns(CLOCK_MONOTONIC);
            all.insert(pid);
        } else if (known->second.scans < full_scans || !known->second.threads.empty()) {
            all.insert(pid);
        }
    }
    return all;
}

void EarlierWaits::scan(const std::vector<pid_t>& users, Waiting& waiting)
{
    reader_.poll();
    const std::set<pid_t> all = due(users);
    if (all.empty())
        return;
    std::map<pid_t, std::set<uint32_t>> seen;
    for (const thread_registers& found : registers_.read(all)) {
        const auto pid = static_cast<pid_t>(found.process);
        Process& process = processes_[pid];
        const bool known = process.threads.contains(found.thread);
        if (!is_in_scope(found, options_) ||
            (!known && (process.scans >= full_scans || process.threads.size() >= threads_max)))
            continue;
        seen[pid].insert(found.thread);
        Thread& thread = process.threads[found.thread];
        const PendingCallsQuestion::Thread now = question_of(found);
        if (now != thread.registers || thread.asked)
            thread.asked = true;
        else if (thread.empty_answers) // the thread has not run since the empty answer, which was therefore right
            thread.reset();
        else
            thread.seen += thread.call.probe != 0;
        thread.registers = now;
    }
    const std::map<pid_t, std::set<uint32_t>> called = waiting.threads();
    for (const pid_t pid : all) {
        Process& process = processes_[pid];
        process.scans++;
        const auto of_process = called.find(pid);
        forget_threads(process, seen[pid], of_process == called.end() ? std::set<uint32_t>() : of_process->second);
        if (!reader_.is_pending(pid))
            ask(pid, process);
    }
}

// Forgets threads that have exited or begun a traced wait. After `full_scans` scans, also forgets threads that are in
// no wait.
void EarlierWaits::forget_threads(Process& process, const std::set<uint32_t>& seen,
                                  const std::set<uint32_t>& called) const
{
    std::erase_if(process.threads, [&](const auto& item) {
        const auto& [tid, thread] = item;
        return !seen.contains(tid) || called.contains(tid) ||
               (process.scans > full_scans && !thread.call.probe && !thread.asked);
    });
}

void EarlierWaits::ask(pid_t pid, const Process& process)
{
    PendingCallsQuestion question{.pid = static_cast<uint32_t>(pid)};
    for (const auto& [tid, thread] : process.threads)
        if (thread.asked && question.threads.size() < PendingCallsQuestion::threads_max)
            question.threads.push_back(thread.registers);
    reader_.ask(question);
}

void EarlierWaits::apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)
{
    const auto known = processes_.find(pid);
    if (known == processes_.end())
        return; // the process exited before the helper process answered
    for (size_t i = 0; i < tids.size(); i++) {
        const auto item = known->second.threads.find(tids[i]);
        const PendingCall& call = calls[i];
        if (item == known->second.threads.end())
            continue;
        Thread& thread = item->second;
        thread.asked = false;
        if (call.probe) {
            thread.empty_answers = 0;
            thread.seen = call == thread.call ? thread.seen + 1 : 1;
            thread.call = call;
        } else if (++thread.empty_answers >= empty_answers_max) {
            thread.reset();
        }
    }
}

std::vector<Waiting::Part> EarlierWaits::parts(uint64_t now_ns, double seconds, Processes& processes)
{
    std::vector<Waiting::Part> all;
    for (const auto& [pid, process] : processes_)
        for (const auto& [tid, thread] : process.threads) {
            if (thread.seen < confirmations)
                continue;
            const Probe& probe = probes_[thread.call.probe - 1];
            call_key key{};
            key.image = processes.track(static_cast<uint32_t>(pid));
            key.kind = KIND_WAIT;
            key.layer = probe.row.layer;
            key.device = DEVICE_UNKNOWN;
            key.wait.wait = probe.row.kind == KIND_COPY ? uint8_t{WAIT_COPY} : probe.row.wait;
            key.duration = BUCKET_NONE;
            key.function = static_cast<uint16_t>(thread.call.probe);
            key.tid = tid;
            key.stack = stacks_.number_of(thread.call.callers);
            key.caller = thread.call.callers.empty() ? 0 : thread.call.callers.front();
            const uint64_t elapsed_ns = now_ns - std::min(now_ns, process.began_ns);
            all.push_back({.key = key,
                           .elapsed_ns = elapsed_ns,
                           .new_ns = std::min(elapsed_ns, static_cast<uint64_t>(seconds * 1e9)),
                           .waiting = true,
                           .earlier = true,
                           .since_ns = process.began_ns});
        }
    return all;
}

} // namespace gpusnoop
