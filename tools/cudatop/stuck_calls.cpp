// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/stuck_calls.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace gpusnoop {
namespace {

constexpr uint64_t second_ns = 1'000'000'000;
constexpr uint64_t tick_ns = second_ns * 9 / 10; // minimum time between two inspections: a second, minus timer jitter
constexpr uint64_t confirmed_ns = 2 * tick_ns;
constexpr uint64_t max_pause_ns = 16 * second_ns;
// A thread is taken to be in no call after this many consecutive answers of the helper that found none. A single such
// answer may be wrong, because a running thread's registers and stack are not read at the same moment.
constexpr unsigned empty_answers_max = 3;
constexpr size_t processes_max = 1024;
constexpr size_t threads_max = 1024; // per process
// After an inspection, pauses for this many times its duration, because an inspection iterates over all threads of the
// machine.
constexpr uint64_t pause_factor = 20;

// Slow functions whose calls no tool counts.
constexpr std::array<std::string_view, 9> uncounted = {
    "cuModuleLoad",      "cuModuleLoadData",      "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleUnload",
    "cuLibraryLoadData", "cuLibraryLoadFromFile", "cuLibraryUnload",    "cuLinkComplete",
};

std::vector<StuckThreads::Function> functions_of(std::span<const Probe> probes, const CallSet& counted)
{
    std::vector<StuckThreads::Function> functions;
    for (const Probe& probe : probes)
        functions.push_back({.is_wait = wait_calls.has(probe.row) && probe.row.wait != WAIT_POLL,
                             .is_counted = counted.has(probe.row)});
    functions.resize(probes.size() + uncounted.size());
    return functions;
}

// Symbols of the probes on the driver API and on HIP, which has no separate runtime layer. For other probes, the symbol
// is empty.
std::vector<std::string_view> symbols_of(std::span<const Probe> probes)
{
    std::vector<std::string_view> symbols;
    for (const Probe& probe : probes)
        symbols.push_back(probe.library == Library::driver || probe.library == Library::hip
                              ? std::string_view(probe.symbol)
                              : std::string_view());
    symbols.insert(symbols.end(), uncounted.begin(), uncounted.end());
    return symbols;
}

} // namespace

void StuckThreads::called(pid_t pid, uint32_t tid, uint64_t now_ns)
{
    const auto known = processes_.find(pid);
    if (known == processes_.end())
        return;
    known->second.called = true;
    known->second.next_ns = 0;
    auto& threads = known->second.threads;
    if (threads.size() >= threads_max && !threads.contains(tid))
        return;
    Thread& thread = threads[tid];
    thread = {.registers = std::move(thread.registers), .unmoved_since_ns = now_ns, .called_ns = now_ns, .call = {}};
}

std::set<pid_t> StuckThreads::due(const std::vector<pid_t>& users, uint64_t now_ns)
{
    std::set<pid_t> all;
    for (const pid_t pid : users) {
        if (processes_.size() >= processes_max && !processes_.contains(pid))
            continue;
        if (processes_[pid].next_ns <= now_ns)
            all.insert(pid);
    }
    return all;
}

void StuckThreads::inspected(pid_t pid, std::span<const PendingCallsQuestion::Thread> threads, uint64_t now_ns)
{
    Process& process = processes_[pid];
    std::set<uint32_t> seen;
    bool is_active = std::exchange(process.called, false);
    for (const PendingCallsQuestion::Thread& now : threads) {
        if (process.threads.size() >= threads_max && !process.threads.contains(now.tid))
            continue;
        seen.insert(now.tid);
        Thread& thread = process.threads[now.tid];
        if (now != thread.registers) {
            thread.registers = now;
            thread.unmoved_since_ns = now_ns;
            thread.is_known = false;
        } else if (thread.is_known && thread.call.probe) {
            thread.seen_ns = now_ns;
        } else if (!thread.is_known) {
            is_active = true; // a helper has yet to inspect this stack, so scan again at the next tick
        }
        is_active |= thread.call.probe != 0;
    }
    std::erase_if(process.threads, [&](const auto& item) { return !seen.contains(item.first); });
    process.pause_ns = is_active ? 0 : std::clamp(2 * process.pause_ns, second_ns, max_pause_ns);
    process.next_ns = now_ns + process.pause_ns;
}

// True if a helper should inspect the thread's stack. A thread that has made calls or waits that the BPF programs
// record is inspected when it stops making them. Any other thread is inspected until several answers in a row have
// found no call in it. After that, it is inspected when its registers stop changing.
bool StuckThreads::is_candidate(const Thread& thread, uint64_t now_ns)
{
    const bool is_unmoved = now_ns - thread.unmoved_since_ns >= tick_ns;
    const bool is_quiet = thread.called_ns && now_ns - thread.called_ns >= tick_ns;
    return !thread.is_known && (thread.called_ns ? is_quiet : is_unmoved || thread.empty_answers < empty_answers_max);
}

PendingCallsQuestion StuckThreads::question(pid_t pid, uint64_t now_ns)
{
    PendingCallsQuestion question{.pid = static_cast<uint32_t>(pid)};
    const auto known = processes_.find(pid);
    if (known == processes_.end())
        return question;
    for (auto& [tid, thread] : known->second.threads) {
        if (!is_candidate(thread, now_ns) || question.threads.size() >= PendingCallsQuestion::threads_max)
            continue;
        thread.asked_ns = now_ns;
        thread.asked_since_ns = thread.unmoved_since_ns;
        question.threads.push_back(thread.registers);
    }
    return question;
}

void StuckThreads::answered(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)
{
    const auto known = processes_.find(pid);
    if (known == processes_.end())
        return;
    for (size_t i = 0; i < tids.size(); i++) {
        const auto item = known->second.threads.find(tids[i]);
        if (item == known->second.threads.end() || !item->second.asked_ns)
            continue; // the thread has made a call since the request
        Thread& thread = item->second;
        const bool is_unmoved = thread.asked_since_ns == thread.unmoved_since_ns;
        thread.is_known = is_unmoved;
        if (!calls[i].probe) {
            const bool stood_still = is_unmoved && thread.asked_ns - thread.asked_since_ns >= tick_ns;
            if (stood_still || ++thread.empty_answers >= empty_answers_max)
                thread.call = {};
            continue;
        }
        thread.empty_answers = 0;
        if (calls[i] != thread.call)
            thread.found_ns = thread.asked_since_ns;
        thread.call = calls[i];
        thread.seen_ns = thread.asked_ns;
    }
}

std::vector<StuckThreads::Stuck> StuckThreads::stuck() const
{
    std::vector<Stuck> all;
    for (const auto& [pid, process] : processes_)
        for (const auto& [tid, thread] : process.threads) {
            if (!thread.call.probe || thread.seen_ns - thread.found_ns < confirmed_ns)
                continue;
            const Function& function = functions_.at(thread.call.probe - 1);
            const bool is_unmoved = thread.unmoved_since_ns <= thread.found_ns;
            if (!function.is_wait && (is_unmoved || function.is_counted))
                all.push_back({pid, tid, thread.found_ns, &thread.call});
        }
    return all;
}

StuckCalls::StuckCalls(std::span<const Probe> probes, const CallSet& counted, const Options& options,
                       ThreadRegisters& registers, UnwoundStacks& stacks)
    : options_(options), registers_(registers), stacks_(stacks), threads_(functions_of(probes, counted)),
      reader_(symbols_of(probes), "its stuck calls are unknown",
              [this](pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls) {
                  threads_.answered(pid, tids, calls);
              })
{
    for (const std::string_view symbol : symbols_of(probes))
        symbols_.emplace_back(symbol);
}

void StuckCalls::inspect(const std::vector<pid_t>& users)
{
    reader_.poll();
    const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    if (begin_ns < not_before_ns_)
        return;
    const std::set<pid_t> due = threads_.due(users, begin_ns);
    std::map<pid_t, std::vector<PendingCallsQuestion::Thread>> threads;
    for (const thread_registers& found : registers_.read(due))
        if (is_in_scope(found, options_))
            threads[static_cast<pid_t>(found.process)].push_back(question_of(found));
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    not_before_ns_ = now_ns + pause_factor * (now_ns - begin_ns);
    for (const pid_t pid : due) {
        threads_.inspected(pid, threads[pid], now_ns);
        if (!reader_.is_pending(pid))
            reader_.ask(threads_.question(pid, now_ns));
    }
}

std::vector<StuckCall> StuckCalls::of_interval(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits,
                                               Processes& processes)
{
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (const CallDelta& delta : calls)
        threads_.called(static_cast<pid_t>(delta.key.image.pid), delta.key.tid, now_ns);
    for (const Waiting::Part& part : waits)
        threads_.called(static_cast<pid_t>(part.key.image.pid), part.key.tid, now_ns);
    std::vector<StuckCall> all;
    for (const auto& [pid, tid, since_ns, call] : threads_.stuck())
        all.push_back({.image = processes.track(static_cast<uint32_t>(pid)),
                       .tid = tid,
                       .seconds = static_cast<double>(now_ns - since_ns) / 1e9,
                       .function = symbols_[call->probe - 1],
                       .stack = stacks_.number_of(call->callers),
                       .caller = call->callers.empty() ? 0 : call->callers.front()});
    return all;
}

} // namespace gpusnoop
