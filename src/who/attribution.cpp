// SPDX-License-Identifier: Apache-2.0
#include "who/attribution.hpp"

#include "util/clock.hpp"
#include "who/container_lookup.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace gpusnoop {
namespace {

// A runtime may write its files after the first call. Looked for again, ever more seldom.
constexpr uint64_t first_pause_ns = 1'000'000'000;
constexpr uint64_t longest_pause_ns = 64'000'000'000;

std::string path_of(const cgroup_path& from)
{
    std::vector<std::string_view> names;
    std::string_view rest(from.names, std::min<size_t>(from.bytes, sizeof(from.names)));
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('\0'), rest.size());
        names.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::string path = from.complete ? "" : "...";
    for (auto name = names.rbegin(); name != names.rend(); ++name)
        path.append("/").append(*name);
    return path.empty() ? "/" : path;
}

// How much a path tells.
int weight(const std::string& path, const CgroupOwner& owner)
{
    if (!owner.container_id.empty())
        return 5;
    if (!owner.pod_uid.empty())
        return 4;
    if (!owner.slurm_job.empty())
        return 3;
    if (!owner.unit.empty())
        return 2;
    return path != "/";
}

} // namespace

std::string Owner::container_name() const
{
    constexpr size_t short_id = 12; // as docker and crictl print it
    return names.container.empty() ? where.container_id.substr(0, short_id) : names.container;
}

std::string Owner::pod_name() const
{
    if (names.pod.empty())
        return pod_uid();
    return names.pod_namespace.empty() ? names.pod : names.pod_namespace + "/" + names.pod;
}

std::string Owner::slurm() const
{
    return where.slurm_step.empty() ? where.slurm_job : where.slurm_job + "." + where.slurm_step;
}

std::string Owner::text() const
{
    constexpr size_t short_uid = 8;
    if (const std::string uid = pod_uid(); !names.pod.empty() || !uid.empty()) {
        const std::string pod = names.pod.empty() ? "pod " + uid.substr(0, short_uid) : pod_name();
        return container() ? pod + "/" + container_name() : pod;
    }
    if (container())
        return (runtime().empty() ? "container" : runtime()) + ":" + container_name();
    if (!where.slurm_job.empty())
        return "slurm:" + slurm();
    if (!where.unit.empty())
        return where.uid ? fmt::format("{} (uid {})", where.unit, *where.uid) : where.unit;
    return cgroup == "/" ? "" : cgroup;
}

Attribution::Attribution(const std::string& host_root, WaitBudget* waits)
    : containers_(std::make_unique<ContainerLookup>(host_root, waits))
{}

Attribution::~Attribution() = default;

void Attribution::learn(const process_record& record)
{
    if (!known_.contains({record.cgroups.v2, record.cgroups.v1}))
        learn(record.cgroups, path_of(record.v2), path_of(record.v1));
}

void Attribution::learn(const cgroups& ids, std::string v2, std::string v1)
{
    auto [item, added] = known_.try_emplace({ids.v2, ids.v1});
    if (!added)
        return;
    Known& known = item->second;
    CgroupOwner of_v2 = parse_cgroup_path(v2), of_v1 = parse_cgroup_path(v1);
    const bool use_v1 = ids.v1 && weight(v1, of_v1) > weight(v2, of_v2);
    known.owner.cgroup = std::move(use_v1 ? v1 : v2);
    known.owner.where = std::move(use_v1 ? of_v1 : of_v2);
    known.pause_ns = first_pause_ns;
    refresh(known);
}

const Owner& Attribution::owner(const cgroups& ids)
{
    auto known = known_.find({ids.v2, ids.v1});
    if (known == known_.end())
        return nobody_;
    if (known->second.next_look_ns && clock_ns(CLOCK_MONOTONIC) >= known->second.next_look_ns)
        refresh(known->second);
    return known->second.owner;
}

void Attribution::refresh(Known& known)
{
    const CgroupOwner& where = known.owner.where;
    if (where.container_id.empty() && where.pod_uid.empty())
        return;
    auto found_now = containers_->find(where);
    if (!found_now) {
        known.next_look_ns = clock_ns(CLOCK_MONOTONIC) + first_pause_ns;
        return;
    }
    known.owner.names = std::move(*found_now);
    const ContainerNames& names = known.owner.names;
    const bool found = !names.container.empty() && (where.pod_uid.empty() || !names.pod.empty());
    known.next_look_ns = found ? 0 : clock_ns(CLOCK_MONOTONIC) + known.pause_ns;
    known.pause_ns = std::min(2 * known.pause_ns, longest_pause_ns);
}

} // namespace gpusnoop
