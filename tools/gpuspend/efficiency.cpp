// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/efficiency.hpp"

#include <cmath>

namespace gpusnoop {

std::string measured_by_text(uint8_t sources)
{
    const bool nvml = sources & MEASURED_BY_NVML, dcgm = sources & MEASURED_BY_DCGM;
    return nvml && dcgm ? "nvml,dcgm" : nvml ? "nvml" : dcgm ? "dcgm" : "";
}

void Gauges::set(Figure figure, std::optional<uint64_t> value, MeasuredBy source)
{
    std::optional<uint64_t>& known = values[static_cast<size_t>(figure)];
    if (!value || known)
        return;
    known = value;
    sources |= source;
}

void Gauges::set_percent(Figure figure, std::optional<double> percent, MeasuredBy source)
{
    if (percent && *percent >= 0 && *percent <= 100)
        set(figure, static_cast<uint64_t>(std::llround(*percent * 10'000)), source);
}

void add_efficiency(Gauges& gauges, const NvmlEfficiency& efficiency)
{
    gauges.set_percent(Figure::sm_active, efficiency.sm_active, MEASURED_BY_NVML);
    gauges.set_percent(Figure::sm_occupancy, efficiency.sm_occupancy, MEASURED_BY_NVML);
    gauges.set_percent(Figure::tensor_active, efficiency.tensor_active, MEASURED_BY_NVML);
    gauges.set_percent(Figure::dram_active, efficiency.dram_active, MEASURED_BY_NVML);
}

void Efficiency::add(const Gauges& gauges, uint64_t ns, bool shared)
{
    for (size_t i = 0; i < figure_count; i++)
        if (const auto value = gauges.values[i]) {
            figures[i].ns += ns;
            figures[i].sum += uint128{*value} * ns;
        }
    shared_ns += gauges.any() && shared ? ns : 0;
    sources |= gauges.sources;
}

void Efficiency::add(const Efficiency& more)
{
    for (size_t i = 0; i < figure_count; i++) {
        figures[i].ns += more.figures[i].ns;
        figures[i].sum += more.figures[i].sum;
    }
    shared_ns += more.shared_ns;
    sources |= more.sources;
}

std::optional<double> Efficiency::mean(Figure figure) const
{
    const auto& [ns, sum] = figures[static_cast<size_t>(figure)];
    return ns ? std::optional(static_cast<double>(sum) / static_cast<double>(ns)) : std::nullopt;
}

} // namespace gpusnoop
