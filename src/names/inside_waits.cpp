// SPDX-License-Identifier: Apache-2.0
#include "names/inside_waits.hpp"

#include "code/inside_search.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpusnoop {

bool is_in_scope(const thread_registers& thread, const Options& options)
{
    if (options.tid && thread.thread != static_cast<uint32_t>(options.tid))
        return false;
    const auto fits = [&](std::string_view name) { return name.find(options.comm) != std::string_view::npos; };
    return fits({thread.comm, strnlen(thread.comm, sizeof(thread.comm))}) ||
           fits(process_name(static_cast<pid_t>(thread.process)).value_or(""));
}

InsideQuestion::Thread question_of(const thread_registers& r)
{
    InsideQuestion::Thread thread{.tid = r.thread, .ip = r.ip, .sp = r.sp};
    std::ranges::copy(r.kept, thread.kept.begin());
    for (const replaced_return& replaced : r.replaced)
        if (replaced.slot)
            thread.replaced.push_back({replaced.slot, replaced.address});
    return thread;
}

InsideHelper::InsideHelper(std::vector<std::string_view> symbols, std::string consequence, Take take)
    : symbols_(std::move(symbols)), take_(std::move(take)),
      reader_({.sandbox = process_reading_sandbox(InsideSearch::memory_bytes),
               .serve = [this](Helper::Task& task) { InsideSearch(symbols_).serve(task); },
               .apply = [this](const Message& message) { return this->apply(message); },
               .restarted = [this] { asked_.clear(); },
               .consequence = std::move(consequence)})
{}

void InsideHelper::ask(const InsideQuestion& question)
{
    const auto pid = static_cast<pid_t>(question.pid);
    if (question.threads.empty() || is_asked_about(pid) || !reader_.post(pid, message_of(question)))
        return;
    for (const InsideQuestion::Thread& thread : question.threads)
        asked_[pid].push_back(thread.tid);
}

bool InsideHelper::apply(const Message& message)
{
    const auto answer = read_message<InsideAnswer>(message.bytes);
    const auto asked = answer ? asked_.find(static_cast<pid_t>(answer->pid)) : asked_.end();
    if (asked == asked_.end())
        return false;
    const auto [pid, tids] = *asked;
    asked_.erase(asked);
    const bool fits =
        tids.size() == answer->calls.size() &&
        std::ranges::all_of(answer->calls, [this](const InsideCall& call) { return call.probe <= symbols_.size(); });
    if (fits)
        take_(pid, tids, answer->calls);
    return fits;
}

} // namespace gpusnoop
