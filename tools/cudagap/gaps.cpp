// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/gaps.hpp"

#include "bpf/shared/probe.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace gpusnoop {

TimeParts parts_of(const period& period)
{
    TimeParts parts{};
    std::ranges::copy(period.ns, parts.begin());
    return parts;
}

std::string comm_of(const waker& waker)
{
    return {waker.comm, strnlen(waker.comm, sizeof(waker.comm))};
}

std::map<GapKey, GapGroup> GapCounts::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                            Processes& processes)
{
    const auto threads = by_place(times);
    std::map<GapKey, GapGroup> groups;
    table_.for_each([&](const gap_key& key, std::span<const gap_count> counts) {
        const auto thread = threads.find(key.place);
        if (thread == threads.end())
            return; // the next report will include this thread
        const ThreadTime& time = *thread->second;
        const gap_count& now = counts.front();
        gap_count& previous = previous_[{key.place, key.bucket, key.stream}];
        if (now.count == previous.count)
            return;
        GapGroup& group = groups[{who_key(view.who, processes, time.image, time.tid, time.cgroup), key.stream}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.gaps.add(key.bucket, now.count - previous.count);
        TimeParts& parts = group.parts[key.bucket];
        for (size_t part = 0; part < TIME_PARTS; part++)
            parts[part] += now.ns[part] - previous.ns[part];
        previous = now;
    });
    std::set<uint32_t> ended;
    for (const ThreadTime& time : times)
        if (time.ended)
            ended.insert(time.place);
    if (!ended.empty())
        forget(ended);
    return groups;
}

void GapCounts::forget(const std::set<uint32_t>& places)
{
    for (const uint32_t place : places) {
        const auto end = previous_.upper_bound({place, UINT32_MAX, UINT64_MAX});
        for (auto at = previous_.lower_bound({place, 0, 0}); at != end; at = previous_.erase(at))
            table_.erase({place, std::get<1>(at->first), std::get<2>(at->first)});
    }
    std::vector<stream_place> ended;
    streams_.for_each([&](const stream_place& stream, std::span<const open_period>) {
        if (places.contains(stream.place))
            ended.push_back(stream);
    });
    for (const stream_place& stream : ended)
        streams_.erase(stream);
}

// Erases idle threads, and decrements their counters in marks_. When a thread exits, the kernel side does both.
void WakingThreads::forget_idle(uint64_t now_ns)
{
    constexpr uint64_t scan_interval_ns = 10'000'000'000, idle_ns = 60'000'000'000;
    if (now_ns < last_scan_ns_ + scan_interval_ns)
        return;
    last_scan_ns_ = now_ns;
    const auto is_idle = [now_ns](const waking_thread& thread) { return now_ns > thread.woke_ns + idle_ns; };
    std::vector<uint32_t> idle;
    table_.for_each([&](uint32_t tid, std::span<const waking_thread> threads) {
        if (is_idle(threads.front()))
            idle.push_back(tid);
    });
    for (uint32_t tid : idle) {
        // Check again: reading the table takes some ms, and the thread may have woken a CUDA thread in this time.
        const auto thread = table_.find(tid);
        if (thread && is_idle(*thread) && table_.erase(tid))
            std::atomic_ref(marks_[tid % marks_.size()]).fetch_sub(1);
    }
}

std::string_view GapLaunch::type() const
{
    switch (call.kind) {
    case KIND_GRAPH_LAUNCH:
        return "graph";
    case KIND_HOST_FUNC:
        return "host function";
    case KIND_LAUNCH_LIST:
        return "kernels of several devices";
    }
    return "kernel";
}

std::string GapLaunch::text(std::string_view form) const
{
    if (call.kind == KIND_LAUNCH_LIST)
        return std::string(type());
    LaunchKey key;
    key.kind = static_cast<uint8_t>(call.kind);
    key.handle = call.handle;
    key.kernel = kernel.text;
    const std::string name = shown_name(key, form);
    return type() == "kernel" && kernel.text.empty() ? fmt::format("kernel {} (name unknown)", name) : name;
}

GapLaunch LaunchNames::named(const ImageId& image, const gap_launch& launch)
{
    GapLaunch named{.call = launch};
    if (launch.kind == KIND_GRAPH_LAUNCH || launch.kind == KIND_LAUNCH_LIST)
        return named;
    named.kernel = names_.name(image, launch.handle).value_or(KernelName());
    if (named.kernel.text.empty() && launch.kind == KIND_LAUNCH)
        unnamed_.add(image, launch.handle);
    return named;
}

GapLaunches LaunchNames::of(const gap_record& gap)
{
    return {named(gap.key.image, gap.before), named(gap.key.image, gap.after)};
}

bool LaunchNames::tick()
{
    names_.tick();
    unnamed_.retry(names_);
    return naming_.tick(unnamed_.size());
}

void LaunchNames::forget(const ImageId& image)
{
    unnamed_.forget(image);
    names_.forget(image);
}

} // namespace gpusnoop
