// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/circumstances.hpp"

#include "proc/process.hpp"

#include <algorithm>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr size_t most = 1024; // processes that are looked at: a dozen files of each, some 0.1 ms

// A cgroup that the process was moved to counts from another begin.
std::optional<uint64_t> since(const std::optional<uint64_t>& now, const std::optional<uint64_t>& before)
{
    return now && before && *now >= *before ? std::optional(*now - *before) : std::nullopt;
}

} // namespace

CircumstancesOf::CircumstancesOf(const std::string& host_root)
    : cgroups_(cgroup_mounts(host_root)), gpu_nodes_(gpusnoop::gpu_nodes("/sys"))
{}

CircumstancesOf::Known CircumstancesOf::read(const ImageId& image, uint64_t now_ns) const
{
    const auto pid = static_cast<pid_t>(image.pid);
    return {.read_ns = now_ns, .process = process_facts(pid), .cgroup = cgroups_.of(cgroup_lines(pid)), .told = {}};
}

void CircumstancesOf::meet(const std::vector<ImageId>& images, uint64_t now_ns)
{
    for (const ImageId& image : images)
        if (known_.size() < most && !known_.contains(image))
            known_.emplace(image, read(image, now_ns));
}

void CircumstancesOf::refresh(const std::set<std::pair<uint32_t, uint32_t>>& threads, uint64_t now_ns)
{
    for (auto& [image, before] : known_) {
        Known now = read(image, now_ns);
        if (now_ns <= before.read_ns || !now.process.threads) { // it has ended: what it did last is not known
            before.told.reset();
            continue;
        }
        const uint64_t covered_ns = now_ns - before.read_ns;
        Circumstances told{.covered_ns = covered_ns,
                           .quota_cpus = now.cgroup.quota_cpus,
                           .throttles = since(now.cgroup.throttles, before.cgroup.throttles),
                           .throttled_ns = since(now.cgroup.throttled_ns, before.cgroup.throttled_ns),
                           .of_machine = uint64_t{now.cgroup.of_machine},
                           .major_faults = since(now.process.major_faults, before.process.major_faults),
                           .read_bytes = since(now.process.read_bytes, before.process.read_bytes),
                           .written_bytes = since(now.process.written_bytes, before.process.written_bytes),
                           .swapped_bytes = now.process.swapped_bytes,
                           .threads = now.process.threads,
                           .allowed_cpus = now.process.allowed_cpus,
                           .cpus = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 0L)),
                           .nodes = {},
                           .gpu_nodes = gpu_nodes_};
        for (size_t of = 0; of < PRESSURES; of++)
            if (const auto us = since(now.cgroup.stalled_us.at(of), before.cgroup.stalled_us.at(of)))
                told.stalled_percent.at(of) =
                    std::min(100.0, static_cast<double>(*us) * 1e5 / static_cast<double>(covered_ns));
        if (!gpu_nodes_.empty())
            for (auto at = threads.lower_bound({image.pid, 0}); at != threads.end() && at->first == image.pid; ++at)
                if (const auto node = numa_node(static_cast<pid_t>(at->first), static_cast<pid_t>(at->second)))
                    told.nodes.insert(*node);
        now.told = std::move(told);
        before = std::move(now);
    }
}

const Circumstances* CircumstancesOf::of(const ImageId& image) const
{
    const auto found = known_.find(image);
    return found != known_.end() && found->second.told ? &*found->second.told : nullptr;
}

void CircumstancesOf::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images)
        known_.erase(image);
}

} // namespace gpusnoop
