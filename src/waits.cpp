// SPDX-License-Identifier: Apache-2.0
#include "waits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bpf/bpf.h>
#include <cerrno>
#include <cstring>
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

static_assert(sizeof(waiting) % 8 == 0, "the kernel rounds values up to 8 bytes");

Waiting::Waiting(int table_fd, int free_fd) : table_fd_(table_fd), free_fd_(free_fd), table_(table_fd, WAITING_MAX) {}

std::optional<waiting> Waiting::read(uint32_t place) const
{
    const volatile waiting& shared = table_[place];
    waiting copy{};
    do {
        copy.since_ns = shared.since_ns;
        std::atomic_thread_fence(std::memory_order_acquire);
        memcpy(&copy.key, const_cast<const call_key*>(&shared.key), sizeof(copy.key));
        std::atomic_thread_fence(std::memory_order_acquire);
    } while (copy.since_ns != shared.since_ns); // another wait has begun meanwhile
    return copy.since_ns ? std::optional(copy) : std::nullopt;
}

std::vector<Waiting::Part> Waiting::take(uint64_t now_ns, uint64_t least_ns)
{
    std::vector<Part> parts;
    std::map<uint32_t, Shown> shown;
    for (uint32_t place = 0; place < WAITING_MAX; place++) {
        const uint32_t pid = table_[place].key.image.pid, tid = table_[place].key.tid;
        if (!pid)
            continue;
        const auto was = shown_.find(place);
        const std::optional<waiting> now = read(place);
        const bool same = was != shown_.end() && now && now->since_ns == was->second.since_ns;
        // It has returned, and its row has all of it.
        if (was != shown_.end() && !same)
            parts.push_back({was->second.key, 0, -static_cast<int64_t>(was->second.shown_ns)});
        // A thread that ended has no more use of its place, and if it was killed while it waited, waits no more.
        if (syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH) {
            const waiting none{};
            bpf_map_update_elem(table_fd_, &place, &none, BPF_ANY);
            bpf_map_update_elem(free_fd_, nullptr, &place, BPF_ANY);
            continue;
        }
        const uint64_t elapsed = now && now_ns > now->since_ns ? now_ns - now->since_ns : 0;
        if (!elapsed || elapsed < least_ns)
            continue;
        const uint64_t before = same ? was->second.shown_ns : 0;
        parts.push_back({now->key, elapsed, static_cast<int64_t>(elapsed) - static_cast<int64_t>(before)});
        shown[place] = {now->key, now->since_ns, elapsed};
    }
    shown_ = std::move(shown);
    return parts;
}

} // namespace gpusnoop
