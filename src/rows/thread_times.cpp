// SPDX-License-Identifier: Apache-2.0
#include "rows/thread_times.hpp"

#include "base/bpf_map.hpp"
#include "proc/process.hpp"
#include "rows/call_view.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bpf/bpf.h>
#include <functional>
#include <numeric>
#include <utility>

namespace gpusnoop {
namespace {

uint64_t since_ns(const thread_time& time)
{
    return time.now >> TIME_SINCE_SHIFT;
}

bool has_ended(const thread_time& time)
{
    return (time.now & TIME_OFF_BITS) == TIME_ENDED;
}

// Returns the thread's times up to `until`, which is in ns since the thread's first call.
TimeSums sums_of(const thread_time& time, uint64_t until)
{
    TimeSums sums{.wall_ns = until,
                  .ns = {},
                  .blocked = time.blocked,
                  .preempted = time.preempted,
                  .faults = time.faults,
                  .collectives = time.collectives};
    std::ranges::copy(time.ns, sums.ns.begin());
    if (until > since_ns(time))
        sums.ns[time_part_of(time.now)] += until - since_ns(time);
    return sums;
}

bool adds_up(const thread_time& time)
{
    return std::accumulate(std::begin(time.ns), std::end(time.ns), uint64_t{0}) == since_ns(time);
}

// Subtracts min(ns, most) from ns, and returns the amount.
uint64_t take_up_to(uint64_t& ns, uint64_t most)
{
    const uint64_t taken = std::min(ns, most);
    ns -= taken;
    return taken;
}

// Corrects times that are negative (modulo 2^64) because an earlier report overstated them. The length and the cause of
// a wait for a CPU are known only when the thread runs again, and some kernels report a context switch late. Until
// then, time is attributed to the state that the thread appears to be in. The excess is subtracted from run-queue wait,
// throttling and CPU time, in this order, and only then from the other times.
void remove_excess(TimeParts& ns)
{
    uint64_t too_much = 0;
    for (uint64_t& part_ns : ns)
        if (static_cast<int64_t>(part_ns) < 0)
            too_much -= std::exchange(part_ns, 0);
    for (const uint32_t part : {TIME_RUNQ, TIME_THROTTLED, TIME_CPU})
        too_much -= take_up_to(ns[part], too_much);
    for (uint64_t& part_ns : ns)
        too_much -= take_up_to(part_ns, too_much);
}

uint8_t vendors_of(uint32_t apis)
{
    uint8_t vendors = 0;
    for (const probe_layer layer : {LAYER_DRIVER, LAYER_RUNTIME, LAYER_HIP})
        if (apis >> layer & 1)
            vendors |= static_cast<uint8_t>(1U << static_cast<unsigned>(vendor_of(layer)));
    return vendors;
}

} // namespace

TimeSums& TimeSums::operator+=(const TimeSums& other)
{
    wall_ns += other.wall_ns;
    std::ranges::transform(ns, other.ns, ns.begin(), std::plus<>());
    blocked += other.blocked;
    preempted += other.preempted;
    faults += other.faults;
    collectives += other.collectives;
    return *this;
}

TimeSums TimeSums::operator-(const TimeSums& earlier) const
{
    TimeSums since{.wall_ns = wall_ns - earlier.wall_ns,
                   .ns = {},
                   .blocked = blocked - earlier.blocked,
                   .preempted = preempted - earlier.preempted,
                   .faults = faults - earlier.faults,
                   .collectives = collectives - earlier.collectives};
    std::ranges::transform(ns, earlier.ns, since.ns.begin(), std::minus<>());
    remove_excess(since.ns);
    return since;
}

CpuTime& CpuTime::operator+=(const CpuTime& other)
{
    wall_ns += other.wall_ns;
    used_ns += other.used_ns;
    ready_ns += other.ready_ns;
    turns += other.turns;
    return *this;
}

// The kernel side writes begin_ns last, so if this returns true, the thread's identity is valid.
bool ThreadTimes::has_begun(uint32_t place) const
{
    return load_acquire(table_[place].begin_ns) != 0;
}

// Returns a consistent copy of a thread's times. At a change of state, the kernel side first sets the new state and
// then adds the time spent in the old one. A copy made between these two steps is inconsistent and is retried. Returns
// nullopt if all attempts fail, for example because the kernel side is preempted between the steps.
std::optional<thread_time> ThreadTimes::consistent_copy(uint32_t place) const
{
    for (int attempt = 0; attempt < 100; attempt++) {
        thread_time seen{};
        volatile thread_time& shared = table_[place];
        const uint64_t before = load_acquire(shared.now);
        std::copy_n(reinterpret_cast<const volatile unsigned char*>(&shared), sizeof(seen),
                    reinterpret_cast<unsigned char*>(&seen));
        std::atomic_thread_fence(std::memory_order_acquire);
        if (seen.now == before && shared.now == before && adds_up(seen))
            return seen;
    }
    return std::nullopt;
}

// Frees a thread's place (index) in the kernel side's table. Call it only after the thread has ended, because the
// kernel side may write to the place until then.
void ThreadTimes::free_place(uint32_t place)
{
    volatile auto* bytes = reinterpret_cast<volatile unsigned char*>(&table_[place]);
    std::fill_n(bytes, sizeof(thread_time), static_cast<unsigned char>(0));
    reported_[place] = {};
    reported_cpu_[place] = {};
    bpf_map_update_elem(free_fd_, nullptr, &place, BPF_ANY);
}

std::optional<ImageId> ThreadTimes::image_of(uint32_t place) const
{
    const auto time = place < PLACES_MAX && has_begun(place) ? consistent_copy(place) : std::nullopt;
    return time ? std::optional<ImageId>(time->image) : std::nullopt;
}

// Returns how much a thread's CPU time has increased since the last successful read, which may be older than the last
// report. The kernel adds the whole wait for a CPU when the wait ends, so an increase may exceed the elapsed time. The
// excess is carried over to the next report.
CpuTime ThreadTimes::cpu_time(uint32_t place, const thread_time& time, uint64_t wall_ns)
{
    constexpr size_t schedstat_reads_max = 4096; // 4096 reads take about 20 ms
    CpuTime& reported = reported_cpu_[place];
    CpuTime now{.wall_ns = wall_ns,
                .used_ns = time.at_end.used_ns,
                .ready_ns = time.at_end.waited_ns,
                .turns = time.at_end.timeslices};
    if (!has_ended(time)) {
        const auto share = schedstat_reads_++ < schedstat_reads_max
                               ? thread_cpu_time(static_cast<pid_t>(time.image.pid), static_cast<pid_t>(time.tid))
                               : std::nullopt;
        if (!share)
            return {};
        now.used_ns = share->used_ns;
        now.ready_ns = share->waited_ns;
        now.turns = share->turns;
    }
    if (!reported.wall_ns)
        reported = {.wall_ns = 0,
                    .used_ns = time.at_begin.used_ns,
                    .ready_ns = time.at_begin.waited_ns,
                    .turns = time.at_begin.timeslices};
    if (now.turns < reported.turns) // the tid was reused, or this kernel has no schedstat
        return {};
    CpuTime since{.wall_ns = now.wall_ns - reported.wall_ns,
                  .used_ns = now.used_ns - std::min(now.used_ns, reported.used_ns),
                  .ready_ns = now.ready_ns - std::min(now.ready_ns, reported.ready_ns),
                  .turns = now.turns - reported.turns};
    since.used_ns = std::min(since.used_ns, since.wall_ns);
    since.ready_ns = std::min(since.ready_ns, since.wall_ns - since.used_ns);
    reported.wall_ns = now.wall_ns;
    reported.used_ns += since.used_ns;
    reported.ready_ns += since.ready_ns;
    reported.turns = now.turns;
    return since;
}

std::vector<ThreadTime> ThreadTimes::drain(uint64_t now_ns)
{
    std::vector<ThreadTime> times;
    const uint32_t taken = std::min<uint32_t>(std::atomic_ref(places_taken_).load(), PLACES_MAX);
    reported_.resize(taken);
    reported_cpu_.resize(taken);
    schedstat_reads_ = 0;
    for (uint32_t place = 0; place < taken; place++) {
        if (!has_begun(place))
            continue;
        const std::optional<thread_time> time = consistent_copy(place);
        if (!time)
            continue; // no consistent copy; the next drain() includes the thread's times since the last one
        const uint64_t age = now_ns > time->begin_ns ? now_ns - time->begin_ns : 0;
        const TimeSums sums = sums_of(*time, has_ended(*time) ? since_ns(*time) : std::max(age, since_ns(*time)));
        ThreadTime delta{.place = place,
                         .ended = has_ended(*time),
                         .image = time->image,
                         .cgroup = time->cgroups,
                         .tid = time->tid,
                         .comm = std::to_array(time->comm),
                         .vendors = vendors_of(time->apis),
                         .other_syscall = {},
                         .collective = time->collective,
                         .sums = sums - reported_[place],
                         .cpu = cheap_ ? cpu_time(place, *time, sums.wall_ns) : CpuTime()};
        if (time->other_syscall)
            delta.other_syscall = time->other_syscall - 1;
        times.push_back(delta);
        reported_[place] = sums;
    }
    return times;
}

void ThreadTimes::forget_ended(const std::vector<ThreadTime>& drained)
{
    for (const ThreadTime& time : drained)
        if (time.ended)
            free_place(time.place);
}

std::unordered_map<uint32_t, const ThreadTime*> by_place(const std::vector<ThreadTime>& times)
{
    std::unordered_map<uint32_t, const ThreadTime*> threads;
    for (const ThreadTime& time : times)
        threads.emplace(time.place, &time);
    return threads;
}

std::set<std::pair<uint32_t, uint32_t>> threads_of(const std::vector<ThreadTime>& times)
{
    std::set<std::pair<uint32_t, uint32_t>> threads;
    for (const ThreadTime& time : times)
        if (!time.ended)
            threads.emplace(time.image.pid, time.tid);
    return threads;
}

void TimeGroup::add(const ThreadTime& time)
{
    threads.emplace(time.image.pid, time.tid);
    sums += time.sums;
    cpu += time.cpu;
    const uint64_t other = time.sums.ns[TIME_OTHER];
    if (other > other_ns) {
        other_ns = other;
        other_syscall = time.other_syscall;
    }
}

std::map<TimeKey, TimeGroup> group_times(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes)
{
    std::map<TimeKey, TimeGroup> groups;
    for (const ThreadTime& time : times) {
        TimeGroup& group = groups[{who_key(view.who, processes, time.image, time.tid, time.cgroup)}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.who.vendors |= time.vendors;
        group.add(time);
    }
    return groups;
}

} // namespace gpusnoop
