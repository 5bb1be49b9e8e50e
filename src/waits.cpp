// SPDX-License-Identifier: Apache-2.0
#include "waits.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <cerrno>
#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {

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
    total_ns += static_cast<int64_t>(delta.total_ns);
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
    group.waiting += part.elapsed_ns != 0;
    group.max_ns = std::max(group.max_ns, part.elapsed_ns);
}

std::map<uint64_t, waiting> Waiting::read() const
{
    std::map<uint64_t, waiting> found;
    uint64_t key = 0, next = 0;
    // An entry that goes while it is looked at sends the walk back to the start: those seen already are only seen
    // again, and it ends after more steps than there can be entries.
    constexpr int steps = 1 << 17;
    for (int i = 0; i < steps && bpf_map_get_next_key(map_fd_, i ? &key : nullptr, &next) == 0; i++) {
        key = next;
        waiting entry{};
        if (bpf_map_lookup_elem(map_fd_, &key, &entry) == 0)
            found[key] = entry;
    }
    return found;
}

std::vector<Waiting::Part> Waiting::take(uint64_t now_ns, uint64_t least_ns)
{
    std::vector<Part> parts;
    std::map<uint64_t, waiting> current = read();
    for (auto& [key, was] : shown_) {
        const auto now = current.find(key);
        // It has returned, and its row has all of it.
        if (now == current.end() || now->second.since_ns != was.since_ns)
            parts.push_back({was.key, 0, -static_cast<int64_t>(was.shown_ns)});
    }
    std::map<uint64_t, Shown> shown;
    for (const auto& [key, entry] : current) {
        // A thread that was killed while it waited leaves its entry behind.
        if (syscall(SYS_tgkill, entry.key.image.pid, key >> 32, 0) && errno == ESRCH) {
            bpf_map_delete_elem(map_fd_, &key);
            continue;
        }
        const uint64_t elapsed = now_ns > entry.since_ns ? now_ns - entry.since_ns : 0;
        if (!elapsed || elapsed < least_ns)
            continue;
        const auto was = shown_.find(key);
        const uint64_t before =
            was != shown_.end() && was->second.since_ns == entry.since_ns ? was->second.shown_ns : 0;
        parts.push_back({entry.key, elapsed, static_cast<int64_t>(elapsed) - static_cast<int64_t>(before)});
        shown[key] = {entry.key, entry.since_ns, elapsed};
    }
    shown_ = std::move(shown);
    return parts;
}

} // namespace gpusnoop
