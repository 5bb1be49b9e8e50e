// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/row_gpus.hpp"

#include <algorithm>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

std::vector<const NvmlDeviceState*> states_of(const OnGpus& on, const Context& context)
{
    std::vector<const NvmlDeviceState*> states;
    for (const NvmlDeviceState& state : context.figures.states())
        if (std::ranges::any_of(on.gpus,
                                [&](const Gpu& gpu) { return gpu.by == Gpu::By::index && gpu.number == state.index; }))
            states.push_back(&state);
    return states;
}

} // namespace

OnGpus gpus_of(const Key& key, const Group& group, const Context& context)
{
    const View& rows = context.settings.rows;
    OnGpus on = context.gpus.of(group.who.images);
    if (rows.device) {
        const bool own = key.gpu.by == Gpu::By::ordinal;
        const bool idle = group.who.images.empty();
        if (key.gpu.by == Gpu::By::none)
            return {};
        return {own ? GpuSource::context : idle ? GpuSource::nvml : on.source, {key.gpu}, {}};
    }
    // The row may have only some of a process's calls. Use the GPUs of these calls, except if the process is on exactly
    // one GPU.
    if (!rows.of_processes() && !group.devices.empty() && on.gpus.size() != 1)
        return {GpuSource::context, group.devices, {}};
    return on;
}

std::string shown_gpus(const OnGpus& on)
{
    if (!on.gpus.empty() || on.possible.empty())
        return gpu_text(on.gpus);
    return "?" + gpu_text(on.possible);
}

std::optional<uint64_t> memory_by_driver(const Key& key, const Group& group, const Context& context)
{
    const View& rows = context.settings.rows;
    if (!rows.of_processes())
        return {};
    if (!rows.device)
        return context.figures.memory_of(group.who.images);
    if (key.gpu.by != Gpu::By::index)
        return {};
    if (!rows.of_gpus() || key.gpu.instance != Gpu::whole)
        return context.figures.memory_of(group.who.images, key.gpu.number);
    for (const NvmlDeviceState* state : states_of({GpuSource::nvml, {key.gpu}, {}}, context))
        return state->memory_used;
    return {};
}

std::string_view driver_memory_source(const Group& group, const Context& context)
{
    std::string_view source;
    for (const Gpu& gpu : context.gpus.of(group.who.images).gpus)
        if (gpu.by == Gpu::By::index) {
            const std::string_view of_this = context.figures.source_of(gpu.number);
            if (!source.empty() && source != of_this)
                return "";
            source = of_this;
        }
    return source.empty() ? "nvml" : source;
}

Cell use_percent(const Key& key, const Group& group, const Context& context, std::optional<double> NvmlUse::*figure)
{
    std::optional<double> percent;
    if (!context.settings.rows.device)
        percent = context.figures.use_of(group.who.images, figure);
    else if (key.gpu.by == Gpu::By::index)
        percent = context.figures.use_of(group.who.images, figure, key.gpu.number);
    return cell_if(percent);
}

Cell busiest(const Key& key, const Group& group, const Context& context)
{
    Cell most;
    for (const NvmlDeviceState* state : states_of(gpus_of(key, group, context), context))
        if (state->utilization && sort_value(most) < *state->utilization)
            most = static_cast<double>(*state->utilization);
    return most;
}

Cell efficiency(const Key& key, const Group& group, const Context& context,
                std::optional<double> NvmlEfficiency::*figure)
{
    const OnGpus on = gpus_of(key, group, context);
    double sum = 0;
    int count = 0;
    const auto add = [&](const NvmlEfficiency& of) {
        if (of.*figure) {
            sum += *(of.*figure);
            count++;
        }
    };
    for (const NvmlDeviceState& state : context.figures.states())
        for (const Gpu& gpu : on.gpus) {
            if (gpu.by != Gpu::By::index || gpu.number != state.index)
                continue;
            if (gpu.instance == Gpu::whole)
                add(state.efficiency);
            for (const NvmlInstance& instance : state.instances)
                if (gpu.instance == instance.gpu_instance)
                    add(instance.efficiency);
        }
    return count ? Cell(sum / count) : Cell();
}

Cell power(const Key& key, const Group& group, const Context& context)
{
    Cell all;
    for (const NvmlDeviceState* state : states_of(gpus_of(key, group, context), context))
        if (state->power_watts)
            all = (std::holds_alternative<double>(all) ? std::get<double>(all) : 0) + *state->power_watts;
    return all;
}

} // namespace gpusnoop::cudatop
