// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/restarts.hpp"

#include "proc/process.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

// Only starts within this time count toward a restart loop. It is long enough for a kubelet's first restarts, which are
// 10 s and 20 s apart.
constexpr uint64_t history_ns = 60'000'000'000;
// A loop has ended if no process has started for this time, and for twice the average time between starts.
constexpr uint64_t min_quiet_ns = 5'000'000'000;
constexpr size_t groups_max = 4096;
constexpr uint64_t restarts_min = 2;

} // namespace

// True if the parents are known and differ. The process may then be an unrelated program of the same name.
bool Restarts::differs(const Group& group, const Process& process)
{
    return !process.is_contained && group.parent && process.parent && group.parent != process.parent;
}

void Restarts::started(const Process& process)
{
    const ImageId image = process.identity.process;
    if (by_image_.contains(image))
        return;
    // If a tracked process has called exec, update its entry, because exec is not a restart.
    for (auto item = by_image_.lower_bound(ImageId{.pid = image.pid, .serial = 0});
         item != by_image_.end() && item->first.pid == image.pid; ++item)
        if (Life* life = life_of(item->first); to_clock_tick(life->start_ns) == to_clock_tick(process.start_ns)) {
            Group& group = groups_.at(item->second);
            if (life == &group.lives.back())
                group.newest = process.identity;
            life->image = image;
            by_image_[image] = item->second;
            by_image_.erase(item);
            return;
        }
    const Key key{process.identity.name, process.place};
    const auto known = by_key_.find(key);
    uint64_t id = known == by_key_.end() ? 0 : known->second;
    if (!id || differs(groups_.at(id), process)) {
        if (groups_.size() >= groups_max)
            return;
        id = ++last_group_;
        by_key_[key] = id;
    }
    Group& group = groups_[id];
    group.key = key;
    if (process.parent)
        group.parent = process.parent;
    const auto at = std::ranges::upper_bound(group.lives, process.start_ns, {}, &Life::start_ns);
    if (at == group.lives.end())
        group.newest = process.identity;
    group.lives.insert(at, {.image = image, .start_ns = process.start_ns});
    by_image_[image] = id;
}

void Restarts::ended(uint32_t pid, uint64_t now_ns)
{
    for (auto item = by_image_.lower_bound(ImageId{.pid = pid, .serial = 0});
         item != by_image_.end() && item->first.pid == pid; ++item)
        if (Life* life = life_of(item->first); !life->end_ns && life->start_ns < now_ns)
            life->end_ns = now_ns;
}

void Restarts::failed(const ImageId& image, std::string error, std::string next)
{
    if (Life* life = life_of(image)) {
        life->error = std::move(error);
        life->next = std::move(next);
    }
}

uint64_t Restarts::group_of(const ImageId& image) const
{
    const auto known = by_image_.find(image);
    return known == by_image_.end() ? 0 : known->second;
}

Restarts::Life* Restarts::life_of(const ImageId& image)
{
    const auto known = by_image_.find(image);
    if (known == by_image_.end())
        return nullptr;
    auto& lives = groups_.at(known->second).lives;
    const auto life = std::find_if(lives.rbegin(), lives.rend(), [&](const Life& one) { return one.image == image; });
    return life == lives.rend() ? nullptr : &*life;
}

void Restarts::expire(uint64_t now_ns)
{
    const uint64_t oldest_ns = now_ns - std::min(now_ns, history_ns);
    for (auto item = groups_.begin(); item != groups_.end();) {
        Group& group = item->second;
        while (!group.lives.empty() && group.lives.front().start_ns < oldest_ns) {
            by_image_.erase(group.lives.front().image);
            group.lives.pop_front();
        }
        if (!group.lives.empty()) {
            ++item;
            continue;
        }
        if (const auto newest = by_key_.find(group.key); newest != by_key_.end() && newest->second == item->first)
            by_key_.erase(newest);
        item = groups_.erase(item);
    }
}

std::vector<Restarts::Loop> Restarts::loops(uint64_t now_ns)
{
    expire(now_ns);
    std::vector<Loop> all;
    for (const auto& [id, group] : groups_) {
        uint64_t first_end_ns = UINT64_MAX;
        for (const Life& life : group.lives)
            if (life.end_ns)
                first_end_ns = std::min(first_end_ns, life.end_ns);
        // A start counts as a restart only if another process of the group exited before it. Otherwise, the ranks of a
        // job, which run at the same time, would count as restarts.
        const auto restarts = static_cast<uint64_t>(
            std::ranges::count_if(group.lives, [&](const Life& life) { return life.start_ns > first_end_ns; }));
        if (restarts < restarts_min)
            continue;
        const uint64_t first_ns = group.lives.front().start_ns, last_ns = group.lives.back().start_ns;
        const uint64_t pause_ns = (last_ns - first_ns) / (group.lives.size() - 1);
        if (now_ns > last_ns + std::max(min_quiet_ns, 2 * pause_ns))
            continue;
        Loop loop{.newest = group.newest,
                  .starts = group.lives.size(),
                  .seconds = static_cast<double>(now_ns - std::min(now_ns, first_ns)) / 1e9};
        loop.newest.exited = group.lives.back().end_ns != 0;
        loop.newest.group = id;
        for (const Life& life : group.lives)
            if (!life.error.empty()) {
                loop.last_error = life.error;
                loop.next = life.next;
            }
        all.push_back(std::move(loop));
    }
    return all;
}

} // namespace gpusnoop
