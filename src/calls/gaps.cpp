// SPDX-License-Identifier: Apache-2.0
#include "calls/gaps.hpp"

#include <span>
#include <unordered_map>

namespace gpusnoop {

std::map<TimeKey, GapGroup> GapCounts::drain(const std::vector<ThreadTime>& times, const CallView& view,
                                             Processes& processes)
{
    std::unordered_map<uint32_t, const ThreadTime*> threads;
    for (const ThreadTime& time : times)
        threads.emplace(time.place, &time);
    std::map<TimeKey, GapGroup> groups;
    table_.for_each([&](const gap_key& key, std::span<const gap_count> counts) {
        const auto thread = threads.find(key.place);
        if (thread == threads.end())
            return; // with the next report
        const ThreadTime& time = *thread->second;
        const gap_count& now = counts.front();
        gap_count& told = told_[{key.place, key.bucket}];
        if (now.count == told.count)
            return;
        GapGroup& group = groups[{who_key(view.who, processes, time.image, time.tid, time.cgroup)}];
        group.who.add(time.image, processes.owner(time.image, time.cgroup));
        group.gaps.add(key.bucket, now.count - told.count);
        TimeParts& parts = group.parts[key.bucket];
        for (size_t part = 0; part < TIME_PARTS; part++)
            parts[part] += now.ns[part] - told.ns[part];
        told = now;
    });
    for (const ThreadTime& time : times)
        if (time.ended)
            forget(time.place);
    return groups;
}

void GapCounts::forget(uint32_t place)
{
    const auto end = told_.upper_bound({place, UINT32_MAX});
    for (auto at = told_.lower_bound({place, 0}); at != end; at = told_.erase(at))
        table_.erase({place, at->first.second});
}

} // namespace gpusnoop
