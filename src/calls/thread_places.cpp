// SPDX-License-Identifier: Apache-2.0
#include "calls/thread_places.hpp"

#include "calls/inside_waits.hpp"
#include "stacks/inside_search.hpp"

#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t processes_max = 256; // looked at

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
    : probes_(probes), symbols_(symbols_of(probes)),
      helper_({.serve = [this](Helper::Task& task) { InsideSearch(symbols_).serve(task); },
               .take = [this](const Message& message) { return take(message); },
               .begun_anew =
                   [this] {
                       for (auto& [pid, process] : processes_)
                           process.asked.clear();
                   },
               .consequence = "which calls its threads are in is not known"})
{}

const std::map<uint32_t, ThreadPlaces::Place>& ThreadPlaces::of(pid_t pid) const
{
    static const std::map<uint32_t, Place> none;
    const auto known = processes_.find(pid);
    return known == processes_.end() ? none : known->second.places;
}

void ThreadPlaces::look(const std::set<pid_t>& processes, uint64_t now_ns)
{
    helper_.hear();
    std::erase_if(processes_, [&](const auto& item) { return !processes.contains(item.first); });
    std::set<pid_t> wanted;
    for (const pid_t pid : processes)
        if (wanted.size() < processes_max && processes_[pid].asked.empty())
            wanted.insert(pid);
    if (wanted.empty())
        return;
    looked_ns_ = now_ns;
    std::map<pid_t, InsideQuestion> questions;
    for (const thread_registers& found : registers_.of(wanted)) {
        InsideQuestion& question = questions[static_cast<pid_t>(found.process)];
        question.pid = found.process;
        if (question.threads.size() < InsideQuestion::threads_max)
            question.threads.push_back(question_of(found));
    }
    for (const auto& [pid, question] : questions)
        if (helper_.post(pid, message_of(question)))
            for (const InsideQuestion::Thread& thread : question.threads)
                processes_[pid].asked.push_back(thread.tid);
}

bool ThreadPlaces::take(const Message& message)
{
    const auto answer = read_message<InsideAnswer>(message.bytes);
    if (!answer)
        return false;
    const auto known = processes_.find(static_cast<pid_t>(answer->pid));
    if (known == processes_.end())
        return true; // nobody asks any more
    const std::vector<uint32_t> asked = std::exchange(known->second.asked, {});
    if (asked.size() != answer->calls.size())
        return false;
    for (const InsideCall& call : answer->calls)
        if (call.probe > symbols_.size())
            return false;
    take(known->second, asked, answer->calls);
    return true;
}

void ThreadPlaces::take(Process& process, const std::vector<uint32_t>& asked, const std::vector<InsideCall>& calls)
{
    std::map<uint32_t, Thread> before = std::exchange(process.threads, {});
    process.places.clear();
    for (size_t i = 0; i < asked.size(); i++) {
        if (!calls[i].probe)
            continue;
        Thread& thread = process.threads[asked[i]];
        if (const auto known = before.find(asked[i]); known != before.end() && known->second.call == calls[i])
            thread = known->second;
        else
            thread = {.call = calls[i], .since_ns = looked_ns_};
        thread.seen++;
        process.places[asked[i]] = {&probes_[calls[i].probe - 1], thread.since_ns, thread.seen, calls[i].callers};
    }
}

} // namespace gpusnoop
