// SPDX-License-Identifier: Apache-2.0
#include "head.hpp"

#include "util/clock.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <numeric>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

Cell known(const std::optional<double>& value)
{
    return value ? Cell(*value) : Cell();
}

} // namespace

Cost::Share Cost::since_last(double seconds)
{
    std::array<uint64_t, HITS> hits{};
    std::vector<uint64_t> per_cpu(static_cast<size_t>(libbpf_num_possible_cpus()));
    for (uint32_t i = 0; i < HITS; i++)
        if (bpf_map_lookup_elem(hits_fd_, &i, per_cpu.data()) == 0)
            hits[i] = std::accumulate(per_cpu.begin(), per_cpu.end(), uint64_t{0});
    const auto entries = static_cast<double>(hits[HIT_ENTRY] - seen_[HIT_ENTRY]);
    const auto returns = static_cast<double>(hits[HIT_RETURN] - seen_[HIT_RETURN]);
    const uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double percent_ns = seconds * 1e7;
    Share share;
    if (seconds > 0) {
        share.hits_per_second = (entries + returns) / seconds;
        if (const std::optional<ProbeCost>& one = of_one_.cost())
            share.probes_percent = (entries * one->entry_ns + returns * one->return_ns) / percent_ns;
        if (own_ns_)
            share.own_percent = static_cast<double>(own_ns - own_ns_) / percent_ns;
    }
    seen_ = hits;
    own_ns_ = own_ns;
    return share;
}

void add_facts(Snapshot& snapshot, const Facts& facts, const NvmlFigures& figures)
{
    const auto& [processes, attached, lost, share] = facts;
    snapshot.facts = {
        {"processes", fmt::format("{}", processes)},
        {"probes", attached},
        {"hits/s", fmt::format("{:.0f}", share.hits_per_second)},
        {"probes' cost", share.probes_percent ? fmt::format("{:.1f}% of a CPU", *share.probes_percent) : "n/a"},
        {"own", share.own_percent ? fmt::format("{:.1f}%", *share.own_percent) : "-"},
        {"lost", fmt::format("{}", lost), lost != 0},
    };
    const std::pair<Column, Cell> sums[] = {
        {{"", "traced_processes", Unit::count}, uint64_t{processes}},
        {{"", "probe_hits_per_second", Unit::rate}, share.hits_per_second},
        {{"", "probes_cpu_percent", Unit::percent}, known(share.probes_percent)},
        {{"", "own_cpu_percent", Unit::percent}, known(share.own_percent)},
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
    for (const NvmlDeviceState& state : figures.states())
        snapshot.gpus.push_back({.index = state.index,
                                 .name = state.name,
                                 .utilization = state.utilization,
                                 .power_watts = state.power_watts,
                                 .memory_used = state.memory_used,
                                 .memory_total = state.memory_total});
}

} // namespace gpusnoop::cudatop
