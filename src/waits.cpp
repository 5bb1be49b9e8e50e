// SPDX-License-Identifier: Apache-2.0
#include "waits.hpp"

#include "process.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

// A thread that is killed while it waits leaves its entry behind.
bool is_alive(const waiting_key& key, const waiting& entry)
{
    const uint64_t start = thread_start_time_ns(static_cast<pid_t>(key.image.pid), static_cast<pid_t>(key.tid));
    return start && start == to_clock_tick(entry.thread_start_ns);
}

} // namespace

std::string_view wait_name(uint8_t wait)
{
    constexpr std::array<std::string_view, WAITS> names = {"none",  "stream", "context", "event",
                                                           "value", "copy",   "free",    "poll"};
    return wait < names.size() ? names[wait] : names[WAIT_NONE];
}

void WaitGroup::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    calls += delta.count;
    if (key.flags & CALL_NOT_READY)
        not_ready += delta.count;
    if (key.result)
        errors += delta.count;
    if (!(key.flags & CALL_IN_PARTS))
        total_ns += delta.total_ns;
    max_ns = std::max(max_ns, delta.max_ns);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, delta.count);
}

WaitGroup& WaitGroups::group_of(const call_key& key)
{
    WaitKey group;
    static_cast<CallKey&>(group) = call_group(settings_.view, processes_, key);
    if (settings_.wait)
        group.wait = key.wait.wait;
    WaitGroup& found = groups_[group];
    found.who.add(key.image, processes_.owner(key.image, key.cgroups));
    found.threads.emplace(key.image.pid, key.tid);
    return found;
}

void WaitGroups::add(const Waiting::Part& part)
{
    WaitGroup& group = group_of(part.key);
    group.total_ns += part.new_ns;
    group.waiting += part.waiting;
    group.max_ns = std::max(group.max_ns, part.elapsed_ns);
}

uint64_t Waiting::end_interval(uint64_t now_ns, uint64_t first)
{
    before_ns_ = now_ns_;
    now_ns_ = now_ns;
    std::atomic_ref(reported_ns_).store(now_ns);
    return before_ns_ ? now_ns - before_ns_ : first;
}

std::vector<Waiting::Part> Waiting::take(uint64_t least_ns)
{
    // Programs that began before reported_ns was set end first: their calls are in the table alone, or here alone.
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    std::vector<Part> parts;
    std::vector<waiting_key> gone;
    table_.for_each([&](const waiting_key& key, std::span<const waiting> values) {
        const waiting& entry = values.front();
        if (key.since_ns >= now_ns_)
            return; // the next interval's, and what is behind its end is, too
        const bool over = entry.ended_ns && entry.ended_ns <= now_ns_;
        const bool dead = !entry.ended_ns && !is_alive(key, entry);
        if (over || dead)
            gone.push_back(key);
        if (dead)
            return;
        const uint64_t until = over ? entry.ended_ns : now_ns_;
        const bool told = key.since_ns < before_ns_ && before_ns_ - key.since_ns >= least_ns;
        const uint64_t from = told ? before_ns_ : key.since_ns;
        if (until - key.since_ns >= least_ns)
            parts.push_back({entry.key, until - key.since_ns, until - from, !over});
    });
    for (const waiting_key& key : gone)
        table_.erase(key);
    return parts;
}

} // namespace gpusnoop
