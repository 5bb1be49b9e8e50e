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
            return; // with the next report
        const ThreadTime& time = *thread->second;
        const gap_count& now = counts.front();
        gap_count& told = told_[{key.place, key.bucket, key.stream}];
        if (now.count == told.count)
            return;
        GapGroup& group = groups[{who_key(view.who, processes, time.image, time.tid, time.cgroup), key.stream}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.gaps.add(key.bucket, now.count - told.count);
        TimeParts& parts = group.parts[key.bucket];
        for (size_t part = 0; part < TIME_PARTS; part++)
            parts[part] += now.ns[part] - told.ns[part];
        told = now;
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
        const auto end = told_.upper_bound({place, UINT32_MAX, UINT64_MAX});
        for (auto at = told_.lower_bound({place, 0, 0}); at != end; at = told_.erase(at))
            table_.erase({place, std::get<1>(at->first), std::get<2>(at->first)});
    }
    std::vector<stream_place> gone;
    streams_.for_each([&](const stream_place& stream, std::span<const open_period>) {
        if (places.contains(stream.place))
            gone.push_back(stream);
    });
    for (const stream_place& stream : gone)
        streams_.erase(stream);
}

// The kernel side does the same where one ends: whoever takes an entry out takes its mark, too.
void WakingThreads::forget_idle(uint64_t now_ns)
{
    constexpr uint64_t often = 10'000'000'000, idle = 60'000'000'000;
    if (now_ns < looked_ns_ + often)
        return;
    looked_ns_ = now_ns;
    const auto is_idle = [now_ns](const waking_thread& thread) { return now_ns > thread.woke_ns + idle; };
    std::vector<uint32_t> gone;
    table_.for_each([&](uint32_t tid, std::span<const waking_thread> threads) {
        if (is_idle(threads.front()))
            gone.push_back(tid);
    });
    for (uint32_t tid : gone) {
        // It may have woken one since its part of the table was read, which takes some ms.
        const auto thread = table_.find(tid);
        if (thread && is_idle(*thread) && table_.erase(tid))
            std::atomic_ref(marks_[tid % marks_.size()]).fetch_sub(1);
    }
}

std::string_view GapLaunch::what() const
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

std::string GapLaunch::text(std::string_view how) const
{
    if (call.kind == KIND_LAUNCH_LIST)
        return std::string(what());
    LaunchKey key;
    key.kind = static_cast<uint8_t>(call.kind);
    key.handle = call.handle;
    key.kernel = kernel.text;
    const std::string name = shown_name(key, how);
    return what() == "kernel" && kernel.text.empty() ? fmt::format("kernel {} without a name", name) : name;
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
