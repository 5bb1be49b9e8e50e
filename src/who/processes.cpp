// SPDX-License-Identifier: Apache-2.0
#include "who/processes.hpp"

#include "base/bpf_map.hpp"
#include "base/clock.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t owners_max = 4096;

// Placeholder image for a process that has made no traced call yet.
::image unseen(uint32_t pid)
{
    return {pid, 0};
}

// Makes up an id for a cgroup that the kernel side has not reported. The top bit is set, which no real id (inode
// number) has.
uint64_t made_up_id(std::string_view path)
{
    return path.empty() ? 0 : std::hash<std::string_view>()(path) | uint64_t{1} << 63;
}

} // namespace

ImageId Processes::track(uint32_t pid)
{
    auto item = known_.lower_bound(unseen(pid));
    if (item != known_.end() && item->first.pid == pid) {
        const auto is_running = [](const auto& known) { return known.second.start_ns && !known.second.replaced; };
        for (auto one = item; one != known_.end() && one->first.pid == pid; ++one)
            if (is_running(*one))
                item = one;
        return item->first;
    }
    const auto process = static_cast<pid_t>(pid);
    const uint64_t start_ns = start_time_ns(process);
    if (!start_ns || !has_memory(process)) // a zombie has a start time, but no memory
        return unseen(pid);
    const std::string lines = cgroup_lines(process);
    ProcessCgroups groups = gpusnoop::cgroups_of(lines, cgroup_mounts_);
    ProcessInfo info;
    info.start_ns = start_ns;
    info.seen_ns = clock_ns(CLOCK_MONOTONIC);
    info.cgroup = {made_up_id(groups.v2.path), made_up_id(lines)};
    std::vector<CgroupPlace> places = std::move(groups.v1);
    places.insert(places.begin(), std::move(groups.v2));
    attribution_.learn(info.cgroup, std::move(places));
    known_.emplace(unseen(pid), std::move(info));
    return unseen(pid);
}

void Processes::learn(const process_record& record)
{
    known_.erase(unseen(record.image.pid));
    attribution_.learn(record);
    // The entry may already exist, because info() can be called before the record is read.
    ProcessInfo& info = known_[record.image];
    if (info.start_ns)
        return; // already known: the process has moved to another cgroup, which causes another record
    learned_.insert(record.image);
    info.start_ns = record.start_ns;
    info.seen_ns = record.seen_ns;
    info.ns_pid = record.ns_pid;
    info.cgroup = record.cgroups;
    info.comm.assign(record.comm, strnlen(record.comm, sizeof(record.comm)));
}

const ProcessInfo& Processes::info(const ImageId& image)
{
    ProcessInfo& info = known_[image];
    if (fresh_.insert(image).second && !info.replaced && same_process(image))
        if (auto comm = process_name(static_cast<pid_t>(image.pid)))
            info.comm = *comm;
    return info;
}

void Processes::learn_thread(const ImageId& image, uint32_t tid, std::span<const char, 16> comm, bool ended)
{
    Thread& thread = threads_[{image, tid}];
    thread.used = true;
    if (ended || thread.name.empty())
        thread.name.assign(comm.data(), strnlen(comm.data(), comm.size()));
}

const std::string& Processes::thread_name(const ImageId& image, uint32_t tid)
{
    Thread& thread = threads_[{image, tid}];
    thread.used = true;
    if (std::exchange(thread.fresh, true))
        return thread.name;
    const auto id = static_cast<pid_t>(tid);
    const bool runs =
        !known_[image].replaced && same_process(image) && process_of_thread(id) == static_cast<pid_t>(image.pid);
    const auto now = runs ? process_name(id) : std::nullopt; // accepts a thread id, as every thread has a /proc/TID
    const struct {
        ::image image;
        uint64_t number;
    } key{image, tid};
    std::array<char, 16> comm{};
    if (now)
        thread.name = *now;
    else if (threads_fd_ >= 0 && bpf_map_lookup_elem(threads_fd_, &key, comm.data()) == 0)
        learn_thread(image, tid, comm, false);
    return thread.name;
}

void Processes::refresh()
{
    fresh_.clear();
    std::erase_if(threads_, [](const auto& entry) { return !entry.second.used; });
    for (auto& [key, thread] : threads_)
        thread.fresh = thread.used = false;
}

const std::string& Processes::command_line(const ImageId& image)
{
    const auto known = known_.find(image);
    const bool runs = known != known_.end() && !known->second.replaced && same_process(image);
    // If the process has exited, another process may have its pid.
    return runs ? command_lines_.of(image) : command_lines_.last_known(image);
}

const Owner& Processes::owner(const ImageId& image, const cgroups& ids)
{
    return attribution_.owner(ids.v2 || ids.v1 ? ids : known_[image].cgroup);
}

bool Processes::on_exec(uint32_t pid, uint64_t time_ns)
{
    bool any = false;
    for (auto item = known_.lower_bound(::image{pid, 0}); item != known_.end() && item->first.pid == pid; ++item) {
        item->second.replaced |= item->second.seen_ns && item->second.seen_ns < time_ns;
        any |= item->second.replaced;
        if (item->second.replaced && began_before_tracing(item->second))
            executed_.insert(pid);
    }
    return any;
}

// Compares clock ticks, because start times in /proc have no better resolution.
bool Processes::began_before_tracing(const ProcessInfo& info) const
{
    return info.start_ns && to_clock_tick(info.start_ns) < to_clock_tick(began_ns_);
}

std::optional<Sampled> Processes::sampled(const std::set<ImageId>& images) const
{
    std::optional<Sampled> worst;
    for (const ImageId& image : images)
        if (const auto found = sampled_.find(image.pid); found != sampled_.end())
            if (!worst || found->second.percent < worst->percent)
                worst = found->second;
    return worst;
}

bool Processes::any_began_before_tracing(const std::set<ImageId>& images) const
{
    return std::ranges::any_of(images, [this](const ImageId& image) {
        const auto known = known_.find(image);
        return known != known_.end() && began_before_tracing(known->second) &&
               (known->second.replaced || !executed_.contains(image.pid));
    });
}

// True if the pid still belongs to the same process. Compares start times, because pids are reused.
bool Processes::same_process(const ImageId& image)
{
    const uint64_t started = known_[image].start_ns;
    const uint64_t now = start_time_ns(static_cast<pid_t>(image.pid));
    return started && to_clock_tick(started) == now;
}

bool Processes::has_exited(const ImageId& image)
{
    // A zombie has a start time, but no memory.
    return known_[image].replaced || !same_process(image) || !has_memory(static_cast<pid_t>(image.pid));
}

std::vector<ImageId> Processes::extract_exited(std::set<uint32_t>& pids)
{
    for (const ImageId& image : std::exchange(learned_, {}))
        if (has_exited(image))
            pids.insert(image.pid);
    std::vector<ImageId> all;
    std::erase_if(pids, [&](uint32_t pid) {
        bool alive = false; // true if an image is still running; the pid is then kept, so that the next call checks it
                            // again
        for (auto item = known_.lower_bound(::image{pid, 0}); item != known_.end() && item->first.pid == pid; ++item) {
            if (has_exited(item->first))
                all.push_back(item->first);
            else
                alive = true;
        }
        return !alive;
    });
    return all;
}

std::set<uint32_t> Processes::pids() const
{
    std::set<uint32_t> all;
    for (const auto& [image, info] : known_)
        all.insert(image.pid);
    return all;
}

std::set<pid_t> Processes::exited() const
{
    std::set<pid_t> all;
    for (const auto& [image, info] : known_) {
        const auto pid = static_cast<pid_t>(image.pid);
        if (!running_thread(pid) || (info.start_ns && start_time_ns(pid) != to_clock_tick(info.start_ns)))
            all.insert(pid);
    }
    return all;
}

std::vector<ImageId> Processes::images() const
{
    std::vector<ImageId> running;
    for (const auto& [image, info] : known_)
        if (!info.replaced && info.start_ns)
            running.push_back(image);
    return running;
}

void Processes::forget(const std::set<ImageId>& images)
{
    if (images.empty())
        return;
    erase_images(map_fd_, [&](const ::image& image) { return images.contains(image); });
    std::erase_if(threads_, [&](const auto& entry) { return images.contains(entry.first.first); });
    for (const ImageId& image : images) {
        known_.erase(image);
        fresh_.erase(image);
        command_lines_.forget(image);
    }
    if (attribution_.size() <= owners_max)
        return;
    std::set<std::pair<uint64_t, uint64_t>> used;
    for (const auto& [image, info] : known_)
        used.emplace(info.cgroup.v2, info.cgroup.v1);
    attribution_.forget_unless([&](const cgroups& ids) { return used.contains({ids.v2, ids.v1}); });
}

bool NamedProcesses::on_rename(pid_t pid, std::string_view name)
{
    return matches(name) && pids_.insert(pid).second;
}

bool NamedProcesses::on_fork(pid_t child)
{
    const auto name = process_name(child);
    return name && on_rename(child, *name);
}

bool NamedProcesses::on_exec(pid_t pid, std::string_view name)
{
    return !matches(name) && pids_.erase(pid);
}

void NamedProcesses::rescan()
{
    for (const pid_t pid : all_processes())
        if (!contains(pid) &&
            std::ranges::any_of(thread_names(pid), [this](const auto& name) { return matches(name); }))
            pids_.insert(pid);
}

std::vector<pid_t> Descendants::on_fork(pid_t child, pid_t parent)
{
    if (!all_.contains(parent)) {
        if (unmatched_.size() < unmatched_max)
            unmatched_.emplace(parent, child);
        return {};
    }
    std::vector<pid_t> found{child};
    for (size_t i = 0; i < found.size(); i++) {
        all_.insert(found[i]);
        const auto [first, last] = unmatched_.equal_range(found[i]);
        for (auto next = first; next != last; ++next)
            if (!all_.contains(next->second))
                found.push_back(next->second);
        unmatched_.erase(first, last);
    }
    return found;
}

} // namespace gpusnoop
