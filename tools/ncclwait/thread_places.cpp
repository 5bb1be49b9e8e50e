// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/thread_places.hpp"

#include <string_view>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t processes_max = 256; // limit of processes per scan

std::vector<std::string_view> symbols_of(std::span<const Probe> probes)
{
    std::vector<std::string_view> symbols = symbols_of_waits(probes, true, false);
    for (size_t i = 0; i < probes.size(); i++)
        if (probes[i].library == Library::nccl)
            symbols[i] = probes[i].symbol;
    return symbols;
}

} // namespace

ThreadPlaces::ThreadPlaces(std::span<const Probe> probes)
    : probes_(probes), reader_(symbols_of(probes), "the current calls of its threads are not known",
                               [this](pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls) {
                                   apply(pid, tids, calls);
                               })
{}

const std::map<uint32_t, ThreadPlaces::Place>& ThreadPlaces::of(pid_t pid) const
{
    static const std::map<uint32_t, Place> none;
    const auto known = processes_.find(pid);
    return known == processes_.end() ? none : known->second.places;
}

bool ThreadPlaces::is_known(pid_t pid) const
{
    const auto known = processes_.find(pid);
    return known != processes_.end() && known->second.answered;
}

void ThreadPlaces::scan(const std::set<pid_t>& processes, uint64_t now_ns)
{
    reader_.poll();
    std::erase_if(processes_, [&](const auto& item) { return !processes.contains(item.first); });
    std::set<pid_t> wanted;
    for (const pid_t pid : processes)
        if (wanted.size() < processes_max && !reader_.is_pending(pid))
            wanted.insert(pid);
    if (wanted.empty())
        return;
    scanned_ns_ = now_ns;
    std::map<pid_t, PendingCallsQuestion> questions;
    for (const thread_registers& found : registers_.read(wanted)) {
        PendingCallsQuestion& question = questions[static_cast<pid_t>(found.process)];
        question.pid = found.process;
        if (question.threads.size() < PendingCallsQuestion::threads_max)
            question.threads.push_back(question_of(found));
    }
    for (const pid_t pid : wanted)
        processes_[pid]; // apply() ignores processes without an entry
    for (const auto& [pid, question] : questions)
        reader_.ask(question);
}

void ThreadPlaces::apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)
{
    const auto asked = processes_.find(pid);
    if (asked == processes_.end())
        return; // the process is no longer of interest
    Process& process = asked->second;
    process.answered = true;
    std::map<uint32_t, Thread> before = std::exchange(process.threads, {});
    process.places.clear();
    for (size_t i = 0; i < tids.size(); i++) {
        if (!calls[i].probe)
            continue;
        Thread& thread = process.threads[tids[i]];
        if (const auto known = before.find(tids[i]); known != before.end() && known->second.call == calls[i])
            thread = known->second;
        else
            thread = {.call = calls[i], .since_ns = scanned_ns_};
        thread.scans++;
        process.places[tids[i]] = {&probes_[calls[i].probe - 1], thread.since_ns, thread.scans, calls[i].callers};
    }
}

} // namespace gpusnoop
