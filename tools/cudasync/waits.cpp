// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/waits.hpp"

#include "base/bpf_map.hpp"
#include "base/clock.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bpf/bpf.h>
#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

static_assert(sizeof(waiting) % 8 == 0, "the kernel rounds values up to 8 bytes");

// False if the thread has exited, even if it was killed while it waited.
bool is_alive(const wait_call& call, uint64_t start_ns)
{
    const auto pid = static_cast<pid_t>(call.key.image.pid), tid = static_cast<pid_t>(call.key.tid);
    if (!call.since_ns) // there is no wait to report, so it does not matter if a new thread has reused the id
        return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH;
    const uint64_t start = thread_start_time_ns(pid, tid);
    return start && start == to_clock_tick(start_ns);
}

// Reads a consistent copy. The kernel side sets since_ns to 0 before it changes anything else, and writes it last.
wait_call read(const volatile wait_call& shared)
{
    wait_call copy{};
    do {
        copy.since_ns = load_acquire(shared.since_ns);
        copy.ended_ns = shared.ended_ns;
        memcpy(&copy.key, const_cast<const call_key*>(&shared.key), sizeof(copy.key));
        std::atomic_thread_fence(std::memory_order_acquire);
    } while (copy.since_ns != shared.since_ns);
    return copy;
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
    calls += delta[CALL_COUNT];
    if (key.flags & CALL_NOT_READY)
        not_ready += delta[CALL_COUNT];
    if (key.result)
        errors += delta[CALL_COUNT];
    if (!(key.flags & CALL_IN_PARTS))
        total_ns += delta[CALL_TOTAL_NS];
    max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, delta[CALL_COUNT]);
}

void WaitKey::set(const WaitSettings& settings, const call_key& call)
{
    if (settings.wait)
        wait = call.wait.wait;
}

WaitGroup& WaitGroups::group_with_thread(const call_key& call)
{
    WaitGroup& group = called(call);
    group.threads.emplace(call.image.pid, call.tid);
    return group;
}

void WaitGroups::add(const Waiting::Part& part)
{
    WaitGroup& group = group_with_thread(part.key);
    group.total_ns += part.new_ns;
    group.waiting += part.waiting;
    group.earlier += part.earlier;
    group.ended += part.ended;
    group.ended_ns += part.ended ? part.elapsed_ns : 0;
    group.max_ns = std::max(group.max_ns, part.elapsed_ns);
}

uint64_t Waiting::end_interval(uint64_t now_ns, uint64_t first)
{
    begin_ns_ = end_ns_;
    end_ns_ = (now_ns & ~uint64_t{1}) | ((end_ns_ & 1) ^ 1);
    std::atomic_ref(shared_.reported_ns).store(end_ns_);
    return begin_ns_ ? end_ns_ - begin_ns_ : first;
}

void Waiting::add_part(std::vector<Part>& parts, const wait_call& call, uint64_t least_ns, State state) const
{
    const bool reported = call.since_ns < begin_ns_ && begin_ns_ - call.since_ns >= least_ns;
    const uint64_t from = reported ? begin_ns_ : call.since_ns;
    uint64_t until = state == State::waiting ? end_ns_ : call.ended_ns;
    // If the end was noticed late, ended_ns is before begin_ns_, up to which the last report has counted the wait.
    if (state == State::ended)
        until = std::max(from, std::min(until, end_ns_));
    if (until - call.since_ns >= least_ns)
        parts.push_back({.key = call.key,
                         .elapsed_ns = until - call.since_ns,
                         .new_ns = until - from,
                         .waiting = state == State::waiting,
                         .ended = state == State::ended,
                         .since_ns = call.since_ns});
}

// The time at which a thread's exit or exec ended its unfinished call; nullopt if the call may still return.
std::optional<uint64_t> Waiting::end_of(const wait_call& call, uint64_t thread_start_ns) const
{
    const uint32_t pid = call.key.image.pid;
    const auto exec = execs_.find(pid);
    if (exec != execs_.end() && call.since_ns < exec->second)
        return exec->second;
    if (is_alive(call, thread_start_ns))
        return {};
    const auto exit = exits_.find(pid);
    return exit != exits_.end() && call.since_ns < exit->second ? exit->second : clock_ns(CLOCK_MONOTONIC);
}

// If the thread has exited, moves its call to ended_; if not, returns false. Needs no synchronization, because the
// kernel side does not write to an exited thread's place in the table.
bool Waiting::collect_ended(volatile waiting& place, const wait_call& call)
{
    const std::optional<uint64_t> end = end_of(call, place.thread_start_ns);
    if (!end)
        return false;
    if (place.now.since_ns != call.since_ns)
        return true; // the call returned before the thread ended
    place.now.since_ns = 0;
    ended_.push_back(call);
    ended_.back().ended_ns = *end;
    return true;
}

uint32_t Waiting::places()
{
    const auto taken = std::min<uint32_t>(std::atomic_ref(shared_.places_taken).load(), PLACES_MAX);
    table_.map_at_least(std::bit_ceil(taken)); // the rounded number does not exceed PLACES_MAX, which is a power of two
    return taken;
}

std::vector<Waiting::Part> Waiting::drain(uint64_t least_ns)
{
    // Let BPF programs that began before reported_ns was set finish. They may still add a returning call to the
    // kernel's counts, and the loop below could then count the call's time again.
    if (!barrier_.wait()) {
        end_ns_ = begin_ns_; // the next report includes this interval
        return {};
    }
    std::vector<Part> parts;
    const uint32_t taken = places();
    for (uint32_t place = 0; place < taken; place++) {
        volatile waiting& shared = table_[place];
        if (!shared.thread_start_ns)
            continue;
        // A call that returns during this loop is in `now`, in `spanning`, or in both.
        const wait_call now = read(shared.now);
        bool returned = false;
        for (volatile wait_call& spanning : shared.spanning) {
            const wait_call call = read(spanning);
            if (!call.since_ns)
                continue;
            returned |= call.since_ns == now.since_ns;
            const bool over = call.ended_ns <= end_ns_;
            add_part(parts, call, least_ns, over ? State::returned : State::waiting);
            if (over)
                spanning.since_ns = 0;
        }
        if (now.since_ns && !returned && now.since_ns < end_ns_ && !collect_ended(shared, now))
            add_part(parts, now, least_ns, State::waiting);
    }
    for (const wait_call& call : std::exchange(ended_, {}))
        add_part(parts, call, least_ns, State::ended);
    return parts;
}

void Waiting::forget_ended()
{
    const uint64_t long_since_ns = clock_ns(CLOCK_MONOTONIC) - LONG_WAIT_NS;
    bool has_long_wait = false;
    const uint32_t taken = places();
    for (uint32_t place = 0; place < taken; place++) {
        volatile waiting& shared = table_[place];
        if (!shared.thread_start_ns)
            continue;
        const wait_call now = read(shared.now);
        if (now.since_ns && !collect_ended(shared, now)) {
            has_long_wait |= now.since_ns < long_since_ns;
            continue;
        }
        const bool reported = !shared.spanning[0].since_ns && !shared.spanning[1].since_ns;
        if (!reported || is_alive(read(shared.now), shared.thread_start_ns))
            continue;
        shared.now.since_ns = 0;
        // Clear the pid, so that the next owner of the place is not mistaken for this thread during its first call.
        shared.now.key.image.pid = 0;
        shared.thread_start_ns = 0;
        bpf_map_update_elem(free_fd_, nullptr, &place, BPF_ANY);
    }
    shared_.has_long_wait = has_long_wait;
    exits_.clear();
    execs_.clear();
}

std::map<pid_t, std::set<uint32_t>> Waiting::threads()
{
    std::map<pid_t, std::set<uint32_t>> all;
    const uint32_t taken = places();
    for (uint32_t place = 0; place < taken; place++)
        if (table_[place].thread_start_ns) {
            const volatile call_key& last = table_[place].now.key;
            const uint32_t pid = last.image.pid, tid = last.tid;
            all[static_cast<pid_t>(pid)].insert(tid);
        }
    return all;
}

} // namespace gpusnoop
