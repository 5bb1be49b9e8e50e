// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/circumstances.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace gpusnoop {

namespace {

std::string text_of(const std::string& path)
{
    constexpr size_t max = 64 << 10; // a status file has about 2 KiB
    return read_text(path, max).value_or("");
}

template<class Number = uint64_t>
std::optional<Number> number_at(std::string_view text)
{
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return consume_number<Number>(text);
}

std::optional<uint64_t> number_of(std::string_view text, std::string_view key)
{
    return leading_number<uint64_t>(status_value(text, key));
}

} // namespace

ProcessFacts parse_process_facts(std::string_view stat, std::string_view status, std::string_view io)
{
    constexpr int state = 3, major_faults = 12;
    if (const std::string_view letter = stat_field(stat, state); letter == "Z" || letter == "X")
        return {}; // a zombie has left its cgroup
    ProcessFacts facts{.major_faults = parse_number<uint64_t>(stat_field(stat, major_faults)),
                       .read_bytes = number_of(io, "read_bytes"),
                       .written_bytes = number_of(io, "write_bytes"),
                       .swapped_bytes = number_of(status, "VmSwap"),
                       .threads = number_of(status, "Threads")};
    if (facts.swapped_bytes) // the file's kB are units of 1024
        facts.swapped_bytes = *facts.swapped_bytes * 1024;
    return facts;
}

ProcessFacts process_facts(pid_t pid)
{
    // If the main thread has exited, read the files of another thread. They show the same sums for the process.
    const pid_t thread = running_thread(pid).value_or(pid);
    const std::string folder = fmt::format("/proc/{}/", thread);
    ProcessFacts facts =
        parse_process_facts(text_of(folder + "stat"), text_of(folder + "status"), text_of(folder + "io"));
    facts.allowed_cpus = allowed_cpus(thread);
    return facts;
}

std::optional<unsigned> numa_node(pid_t pid, pid_t tid)
{
    constexpr int processor = 39;
    const std::string stat = text_of(fmt::format("/proc/{}/task/{}/stat", pid, tid));
    const auto cpu = parse_number<unsigned>(stat_field(stat, processor));
    std::error_code error;
    if (cpu)
        for (std::filesystem::directory_iterator entry(fmt::format("/sys/devices/system/cpu/cpu{}", *cpu), error), end;
             !error && entry != end; entry.increment(error)) {
            constexpr std::string_view node = "node";
            const std::string name = entry->path().filename();
            if (name.starts_with(node))
                if (const auto number = number_at<unsigned>(std::string_view(name).substr(node.size())))
                    return number;
        }
    return std::nullopt;
}

std::set<unsigned> gpu_nodes(const std::string& sysfs)
{
    std::set<unsigned> nodes;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(sysfs + "/bus/pci/devices", error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string device = entry->path();
        // Class 0x03 is display controllers. The GPU's audio device has another class.
        if (!text_of(device + "/vendor").starts_with("0x10de") || !text_of(device + "/class").starts_with("0x03"))
            continue;
        if (const auto node = number_at<int>(text_of(device + "/numa_node")); node && *node >= 0) // -1: not known
            nodes.insert(static_cast<unsigned>(*node));
    }
    return nodes;
}

namespace {

constexpr size_t max_processes = 1024; // limit, because reading a dozen files takes about 0.1 ms per process

// Increase of a counter. nullopt if the counter has decreased: the process has then moved to another cgroup.
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
    return {.read_ns = now_ns, .process = process_facts(pid), .cgroup = cgroups_.of(cgroup_lines(pid)), .latest = {}};
}

void CircumstancesOf::track(const std::vector<ImageId>& images, uint64_t now_ns)
{
    for (const ImageId& image : images)
        if (known_.size() < max_processes && !known_.contains(image))
            known_.emplace(image, read(image, now_ns));
}

void CircumstancesOf::refresh(const std::set<std::pair<uint32_t, uint32_t>>& threads, uint64_t now_ns)
{
    for (auto& [image, before] : known_) {
        Known now = read(image, now_ns);
        if (now_ns <= before.read_ns || !now.process.threads) { // an exited process has no result
            before.latest.reset();
            continue;
        }
        const uint64_t covered_ns = now_ns - before.read_ns;
        Circumstances latest{.covered_ns = covered_ns,
                             .quota_cpus = now.cgroup.quota_cpus,
                             .throttles = since(now.cgroup.throttles, before.cgroup.throttles),
                             .throttled_ns = since(now.cgroup.throttled_ns, before.cgroup.throttled_ns),
                             .machine_wide = uint64_t{now.cgroup.machine_wide},
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
                latest.stalled_percent.at(of) =
                    std::min(100.0, static_cast<double>(*us) * 1e5 / static_cast<double>(covered_ns));
        if (!gpu_nodes_.empty())
            for (auto at = threads.lower_bound({image.pid, 0}); at != threads.end() && at->first == image.pid; ++at)
                if (const auto node = numa_node(static_cast<pid_t>(at->first), static_cast<pid_t>(at->second)))
                    latest.nodes.insert(*node);
        now.latest = std::move(latest);
        before = std::move(now);
    }
}

const Circumstances* CircumstancesOf::of(const ImageId& image) const
{
    const auto found = known_.find(image);
    return found != known_.end() && found->second.latest ? &*found->second.latest : nullptr;
}

void CircumstancesOf::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images)
        known_.erase(image);
}

} // namespace gpusnoop
