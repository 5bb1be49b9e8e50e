// SPDX-License-Identifier: Apache-2.0
#include "names/copied_stacks.hpp"

#include "bpf/shared/stack.h"
#include "code/pending_calls.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpusnoop {

bool is_in_scope(const thread_registers& thread, const Options& options)
{
    if (options.tid && thread.thread != static_cast<uint32_t>(options.tid))
        return false;
    const auto matches = [&](std::string_view name) { return name.find(options.comm) != std::string_view::npos; };
    return matches({thread.comm, strnlen(thread.comm, sizeof(thread.comm))}) ||
           matches(process_name(static_cast<pid_t>(thread.process)).value_or(""));
}

PendingCallsQuestion::Thread question_of(const thread_registers& r)
{
    PendingCallsQuestion::Thread thread{.tid = r.thread, .ip = r.ip, .sp = r.sp};
    std::ranges::copy(r.kept, thread.kept.begin());
    for (const replaced_return& replaced : r.replaced)
        if (replaced.slot)
            thread.replaced.push_back({replaced.slot, replaced.address});
    return thread;
}

PendingCallHelper::PendingCallHelper(std::vector<std::string_view> symbols, std::string consequence, OnAnswer on_answer)
    : symbols_(std::move(symbols)), on_answer_(std::move(on_answer)),
      reader_({.serve = serve_in_sandbox<PendingCallSearch>(symbols_),
               .apply = [this](const Message& message) { return this->apply(message); },
               .restarted = [this] { asked_.clear(); },
               .consequence = std::move(consequence)})
{}

bool PendingCallHelper::ask(const PendingCallsQuestion& question)
{
    const auto pid = static_cast<pid_t>(question.pid);
    if (question.threads.empty() || is_pending(pid) || !reader_.post(pid, message_of(question)))
        return false;
    for (const PendingCallsQuestion::Thread& thread : question.threads)
        asked_[pid].push_back(thread.tid);
    return true;
}

bool PendingCallHelper::apply(const Message& message)
{
    const auto answer = read_message<PendingCallsAnswer>(message.bytes);
    const auto asked = answer ? asked_.find(static_cast<pid_t>(answer->pid)) : asked_.end();
    if (asked == asked_.end())
        return false;
    const auto [pid, tids] = *asked;
    asked_.erase(asked);
    const bool is_valid =
        tids.size() == answer->calls.size() &&
        std::ranges::all_of(answer->calls, [this](const PendingCall& call) { return call.probe <= symbols_.size(); });
    if (is_valid)
        on_answer_(pid, tids, answer->calls);
    return is_valid;
}

namespace {

constexpr size_t queue_max = 1024; // maximum number of queued copies, each of up to 8 KiB

// Compares only as many innermost callers as both copies contain.
bool callers_differ(std::span<const uint64_t> first, std::span<const uint64_t> again)
{
    const size_t both = std::min(first.size(), again.size());
    return !std::ranges::equal(first.first(both), again.first(both));
}

} // namespace

CopiedStacks::CopiedStacks(WaitBudget* waits)
    : reader_({.serve = serve_in_sandbox<StackCopyUnwinder>(),
               .apply = [this](const Message& message) { return apply(message); },
               .restarted =
                   [this] {
                       awaited_.clear();
                       for (const StackCopyQuestion& question : queue_)
                           if (!(question.at & COPIED_AGAIN))
                               awaited_.insert(question.stack);
                   },
               .consequence = "native frames of its stacks are missing"},
              waits)
{}

void CopiedStacks::learn(std::span<const uint8_t> record)
{
    stack_copy copy{};
    if (record.size() < sizeof(copy))
        return;
    memcpy(&copy, record.data(), sizeof(copy));
    const auto bytes = record.subspan(sizeof(copy));
    StackCopyQuestion question{
        .stack = copy.stack, .pid = copy.registers.process, .at = copy.at, .thread = question_of(copy.registers)};
    question.bytes.assign(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(copy.bytes, bytes.size()));
    const bool again = (copy.at & COPIED_AGAIN) != 0;
    if (!again)
        known_.insert_or_assign(copy.stack, Known{.image = copy.image});
    if (queue_.size() >= queue_max || (again && !known_.contains(copy.stack)))
        return;
    if (!again)
        awaited_.insert(copy.stack);
    queue_.push_back(std::move(question));
    send();
}

// Sends queued questions until the helper accepts no more.
void CopiedStacks::send()
{
    reader_.poll();
    while (!queue_.empty()) {
        const StackCopyQuestion& next = queue_.front();
        if (reader_.is_blocked(static_cast<pid_t>(next.pid)))
            awaited_.erase(next.stack);
        else if (!reader_.post(static_cast<pid_t>(next.pid), message_of(next)))
            return;
        queue_.pop_front();
    }
}

bool CopiedStacks::apply(const Message& message)
{
    auto answer = read_message<StackCopyAnswer>(message.bytes);
    if (!answer || answer->callers.size() > StackCopyAnswer::callers_max)
        return false;
    const auto known = known_.find(answer->stack);
    if (answer->again) {
        if (known != known_.end() && callers_differ(known->second.stack.callers, answer->callers))
            mismatches_++;
        return true;
    }
    awaited_.erase(answer->stack);
    if (known != known_.end())
        known->second.stack = {.callers = std::move(answer->callers), .cut = answer->cut};
    return true;
}

const CopiedStacks::Stack* CopiedStacks::find(int32_t stack)
{
    const auto known = known_.find(stack);
    if (known == known_.end())
        return nullptr;
    send();
    // Questions are answered in order, so questions that were queued earlier must be sent and answered first.
    while (awaited_.contains(stack) && reader_.wait()) {
        const size_t before = queue_.size();
        send();
        if (queue_.size() == before)
            break; // nothing more could be sent, or the process has used up its share of helper time
    }
    return known->second.stack.callers.empty() ? nullptr : &known->second.stack;
}

void CopiedStacks::forget(const ImageId& image)
{
    std::erase_if(known_, [&](const auto& one) { return one.second.image == image; });
}

void CopiedStacks::keep(const std::set<int32_t>& stacks)
{
    std::erase_if(known_, [&](const auto& one) { return !stacks.contains(one.first); });
}

} // namespace gpusnoop
