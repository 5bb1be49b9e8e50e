// SPDX-License-Identifier: Apache-2.0
#include "launches.hpp"

#include <algorithm>

namespace gpusnoop {

// Both sides read the same bytes; padding inside would make equal keys differ.
static_assert(sizeof(launch_key) == 72);
static_assert(sizeof(launch_shape) == 32);
static_assert(sizeof(launch_stats) == 64);
static_assert(sizeof(launch_event) == 24 + 72 + 32 + 16);

void LaunchTable::add(const launch_event& event)
{
    LaunchDelta& delta = spilled_[event.key];
    delta.key = event.key;
    delta.count++;
    delta.total_ns += event.duration_ns;
    delta.max_ns = std::max<uint64_t>(delta.max_ns, event.duration_ns);
    delta.shape = event.shape;
}

std::vector<LaunchDelta> LaunchTable::take()
{
    std::vector<LaunchDelta> deltas;
    for (const auto& [key, delta] : spilled_)
        deltas.push_back(delta);
    spilled_.clear();
    std::vector<launch_key> gone;
    map_.for_each([&](const launch_key& key, std::span<const launch_stats> per_cpu) {
        LaunchDelta delta{.key = key};
        for (const launch_stats& stats : per_cpu) {
            delta.count += stats.count;
            delta.total_ns += stats.total_ns;
            delta.max_ns = std::max<uint64_t>(delta.max_ns, stats.max_ns);
            if (stats.count && stats.last >= delta.last) {
                delta.last = stats.last;
                delta.shape = stats.shape;
            }
        }
        Totals& seen = seen_[key];
        const Totals now{delta.count, delta.total_ns};
        delta.count -= seen.count;
        delta.total_ns -= seen.total_ns;
        seen = now;
        if (retired_.contains(key.image))
            gone.push_back(key);
        if (delta.count)
            deltas.push_back(delta);
    });
    // A process that has ended adds nothing any more, so nothing is lost between reading and deleting.
    for (const launch_key& key : gone) {
        map_.erase(key);
        seen_.erase(key);
    }
    retired_.clear();
    return deltas;
}

} // namespace gpusnoop
