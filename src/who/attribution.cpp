// SPDX-License-Identifier: Apache-2.0
#include "who/attribution.hpp"

#include "base/clock.hpp"
#include "who/containers.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace gpusnoop {
namespace {

// Pause between lookups of missing names. It doubles each time, because a runtime may write its files late or never.
constexpr uint64_t first_pause_ns = 1'000'000'000;
constexpr uint64_t longest_pause_ns = 64'000'000'000;

// The path and owner of a cgroup. If the names nearest to the root are missing, the owner is unknown.
CgroupPlace place_of(const cgroup_path& from, bool nodes)
{
    std::vector<std::string_view> names;
    const std::string_view all(from.names, std::min<size_t>(from.bytes, sizeof(from.names)));
    for (size_t at = 0, end = 0; at < all.size(); at = end + 1) {
        end = std::min(all.find('\0', at), all.size());
        names.push_back(all.substr(at, end - at));
    }
    const size_t delegated = from.delegated - std::min(from.cut, from.delegated);
    CgroupPlace place{.path = from.complete ? "" : "...", .owner = {}};
    Delegation delegation{.uid = {}, .nodes = nodes};
    for (size_t left = names.size(); left > 0; left--) {
        if (left == delegated)
            delegation.from = place.path.size();
        place.path.append("/").append(names[left - 1]);
    }
    if (from.user != CGROUP_ANY_USER)
        delegation.uid = from.user;
    if (from.complete)
        place.owner = parse_cgroup_path(place.path, delegation);
    if (from.cut)
        place.path.append("/...");
    if (place.path.empty())
        place.path = "/";
    return place;
}

// Rates how much a path shows about the owner. A container or pod named by a user ranks below one named by root.
int weight(const CgroupPlace& place)
{
    const CgroupOwner& owner = place.owner;
    if (owner.named_by_user)
        return owner.container_id.empty() ? 2 : 3;
    if (!owner.container_id.empty())
        return 6;
    if (!owner.pod_uid.empty())
        return 5;
    if (!owner.slurm_job.empty())
        return 4;
    if (!owner.unit.empty())
        return 2;
    return !place.path.empty() && place.path != "/";
}

} // namespace

std::string Owner::container_name() const
{
    constexpr size_t short_id = 12; // as docker and crictl print it
    return names.container.empty() ? where.container_id.substr(0, short_id) : names.container;
}

// Adds the user or node to the id. Ids alone are not unique, because users and containerized nodes choose the ids of
// their containers.
std::string Owner::container_key() const
{
    return where.named_by_user ? where.container_id + uid_suffix() : where.node_id + where.container_id;
}

std::string Owner::uid_suffix() const
{
    return where.uid ? fmt::format(" (uid {})", *where.uid) : std::string();
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
        return (runtime().empty() ? "container" : runtime()) + ":" + container_name() + uid_suffix();
    if (!where.slurm_job.empty())
        return "slurm:" + slurm();
    if (!where.unit.empty())
        return where.unit + uid_suffix();
    return cgroup == "/" ? "" : cgroup;
}

Attribution::Attribution(const std::string& host_root, WaitBudget* waits)
    : mounts_(cgroup_mounts(host_root)), containers_(std::make_unique<ContainerLookup>(host_root, waits))
{}

Attribution::~Attribution() = default;

void Attribution::learn(const process_record& record)
{
    if (known_.contains({record.cgroups.v2, record.cgroups.v1}))
        return;
    const bool nodes = !has_pods(mounts_);
    std::vector places{place_of(record.v2, nodes)};
    if (record.cgroups.v1)
        places.push_back(place_of(record.v1, nodes));
    learn(record.cgroups, std::move(places));
}

void Attribution::learn(const cgroups& ids, std::vector<CgroupPlace> places)
{
    auto [item, added] = known_.try_emplace({ids.v2, ids.v1});
    if (!added)
        return;
    Known& known = item->second;
    const auto best = std::ranges::max_element(places, {}, weight);
    if (best != places.end()) {
        known.owner.cgroup = std::move(best->path);
        known.owner.where = std::move(best->owner);
    }
    known.pause_ns = first_pause_ns;
    refresh(known);
}

const Owner& Attribution::owner(const cgroups& ids)
{
    auto known = known_.find({ids.v2, ids.v1});
    if (known == known_.end())
        return unknown_;
    if (known->second.next_lookup_ns && clock_ns(CLOCK_MONOTONIC) >= known->second.next_lookup_ns)
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
        known.next_lookup_ns = clock_ns(CLOCK_MONOTONIC) + first_pause_ns;
        return;
    }
    known.owner.names = std::move(*found_now);
    const ContainerNames& names = known.owner.names;
    const bool found = !names.container.empty() && (where.pod_uid.empty() || !names.pod.empty());
    known.next_lookup_ns = found ? 0 : clock_ns(CLOCK_MONOTONIC) + known.pause_ns;
    known.pause_ns = std::min(2 * known.pause_ns, longest_pause_ns);
}

} // namespace gpusnoop
