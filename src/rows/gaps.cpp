// SPDX-License-Identifier: Apache-2.0
#include "rows/gaps.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
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

} // namespace gpusnoop
