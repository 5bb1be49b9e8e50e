// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/circumstance_rules.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpusnoop {
namespace {

using Said = std::optional<std::string>;

double seconds_of(const Circumstances& around)
{
    return static_cast<double>(around.covered_ns.value_or(0)) / 1e9;
}

Said quota(const Circumstances& around)
{
    constexpr double much = 0.05; // of the time
    if (!around.quota_cpus || !around.throttles || !around.throttled_ns)
        return {};
    const double seconds = static_cast<double>(*around.throttled_ns) / 1e9;
    if (seconds < much * seconds_of(around))
        return {};
    return fmt::format(
        "its cgroup may use {:.2g} CPUs: throttled {} times, for {:.1f} s (of all CPUs together) in {:.1f} s",
        *around.quota_cpus, *around.throttles, seconds, seconds_of(around));
}

template<Pressure of>
Said pressure(const Circumstances& around)
{
    constexpr double much = 10;
    constexpr std::string_view what[PRESSURES] = {"a CPU", "disks", "memory"};
    const auto percent = around.stalled_percent[of];
    if (!percent || *percent < much)
        return {};
    return fmt::format("some task of {} waits for {} {:.0f}% of the time",
                       around.of_machine.value_or(0) ? "the machine" : "its cgroup", what[of], *percent);
}

Said affinity(const Circumstances& around)
{
    if (!around.allowed_cpus || around.allowed_cpus >= around.cpus)
        return {};
    return fmt::format("it may use {} of {} CPUs{}", around.allowed_cpus, around.cpus,
                       around.threads ? fmt::format(", with {} threads", *around.threads) : "");
}

Said nodes(const Circumstances& around)
{
    if (around.nodes.empty() || around.gpu_nodes.empty() ||
        std::ranges::any_of(around.nodes, [&](unsigned node) { return around.gpu_nodes.contains(node); }))
        return {};
    return fmt::format("its threads are on NUMA node {}, and no GPU is: those are on {}", fmt::join(around.nodes, ", "),
                       fmt::join(around.gpu_nodes, ", "));
}

Said faults(const Circumstances& around)
{
    constexpr double often = 10;
    if (!around.major_faults || seconds_of(around) <= 0)
        return {};
    const double rate = static_cast<double>(*around.major_faults) / seconds_of(around);
    return rate < often ? Said() : fmt::format("{:.0f} page faults/s read from a disk", rate);
}

Said swap(const Circumstances& around)
{
    constexpr uint64_t much = 1 << 20;
    if (around.swapped_bytes.value_or(0) < much)
        return {};
    return fmt::format("{} of its memory is swapped out", human_bytes(*around.swapped_bytes));
}

constexpr CircumstanceRule table[] = {
    {"quota", quota},
    {"pressure of CPUs", pressure<PRESSURE_CPU>},
    {"pressure of disks", pressure<PRESSURE_IO>},
    {"pressure of memory", pressure<PRESSURE_MEMORY>},
    {"affinity", affinity},
    {"nodes", nodes},
    {"faults", faults},
    {"swap", swap},
};

} // namespace

std::span<const CircumstanceRule> circumstance_rules()
{
    return table;
}

std::vector<std::string> circumstance_words(const Circumstances& around)
{
    std::vector<std::string> words;
    for (const CircumstanceRule& rule : table)
        if (auto said = rule.look(around))
            words.push_back(std::move(*said));
    return words;
}

} // namespace gpusnoop
