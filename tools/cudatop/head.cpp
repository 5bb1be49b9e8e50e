// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/head.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

constexpr double low_cost_percent = 5; // overhead that is not worth a warning, in percent of one CPU

// "950", "12.3k", "4.1M"
std::string decimal(double n)
{
    return n < 1000  ? fmt::format("{:.0f}", n)
           : n < 1e6 ? fmt::format("{:.1f}k", n / 1e3)
                     : fmt::format("{:.1f}M", n / 1e6);
}

Fact overhead(const Cost::Share& share)
{
    const std::string hits = decimal(share.hits_per_second);
    if (!share.probes_percent)
        return {"overhead", fmt::format("n/a ({} hits/s)", hits)};
    return {"overhead", fmt::format("{:.1f}% of 1 CPU ({} hits/s)", *share.probes_percent, hits), false,
            *share.probes_percent < low_cost_percent};
}

// Names of the processes that use this GPU, those with most memory first, such as "trainer, solver +2". Includes
// processes that are not traced but listed by NVML.
std::string users_of(unsigned gpu, const NvmlFigures& figures, const ProcessGpus& gpus, Processes& processes)
{
    std::map<uint32_t, uint64_t> bytes; // by pid
    for (const auto& [pid, process] : figures.processes())
        if (process.device == gpu)
            bytes[pid] = process.bytes.value_or(0);
    for (const ImageId& image : processes.images())
        for (const Gpu& on : gpus.of(image).gpus)
            if (on.by == Gpu::By::index && on.number == gpu)
                bytes.emplace(image.pid, 0);
    std::vector<std::pair<uint32_t, uint64_t>> users(bytes.begin(), bytes.end());
    std::ranges::stable_sort(users, std::greater<>(), &std::pair<uint32_t, uint64_t>::second);
    constexpr size_t named = 2;
    std::string text;
    for (const auto& [pid, held] : std::span(users).first(std::min(users.size(), named))) {
        const auto name = process_name(static_cast<pid_t>(pid));
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name ? printable(*name) : std::to_string(pid));
    }
    return users.size() > named ? fmt::format("{} +{}", text, users.size() - named) : text;
}

} // namespace

Facts Head::facts(double seconds, size_t processes)
{
    const Cost::Share share = cost_.since_last(seconds);
    if (warns_of_cost_ && share.probes_percent.value_or(0) > low_cost_percent) {
        warns_of_cost_ = false;
        warn(fmt::format(
            "tracing costs the traced programs {:.0f}% of one CPU: sample with --max-overhead {:g}, or trace "
            "fewer processes with -p",
            *share.probes_percent, low_cost_percent));
    }
    return {processes, running_.attached(), running_.lost(), share};
}

void add_facts(Snapshot& snapshot, const Facts& facts)
{
    const auto& [processes, attached, lost, share] = facts;
    snapshot.facts = {
        {"processes", fmt::format("{}", processes)},
        {"probes", attached},
        overhead(share),
        {"own", share.own_percent ? fmt::format("{:.1f}%", *share.own_percent) : "-", false,
         share.own_percent.value_or(0) < low_cost_percent},
        {"lost", fmt::format("{}", lost), lost != 0},
    };
    const std::pair<Column, Cell> sums[] = {
        {{"", "traced_processes", Unit::count}, uint64_t{processes}},
        {{"", "probe_hits_per_second", Unit::rate}, share.hits_per_second},
        {{"", "probes_cpu_percent", Unit::percent}, cell_if(share.probes_percent)},
        {{"", "own_cpu_percent", Unit::percent}, cell_if(share.own_percent)},
        {{"", "lost", Unit::count}, lost},
    };
    for (auto& [column, cell] : sums) {
        snapshot.columns.push_back({.column = column, .about = "", .shown = false, .needs = ""});
        snapshot.columns.back().column.in_text = false;
        for (TopRow& row : snapshot.rows)
            row.cells.emplace_back();
        for (TopRow& row : snapshot.totals)
            row.cells.push_back(cell);
    }
}

void add_gpus(Snapshot& snapshot, const NvmlFigures& figures, const ProcessGpus& gpus, Processes& processes)
{
    for (const NvmlDeviceState& state : figures.states())
        snapshot.gpus.push_back({.index = state.index,
                                 .name = state.name,
                                 .utilization = state.utilization,
                                 .power_watts = state.power_watts,
                                 .memory_used = state.memory_used,
                                 .memory_total = state.memory_total,
                                 .users = users_of(state.index, figures, gpus, processes)});
}

} // namespace gpusnoop::cudatop
