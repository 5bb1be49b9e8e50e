// SPDX-License-Identifier: Apache-2.0
#include "cudalaunch_columns.hpp"

#include "label.hpp"

#include <fmt/format.h>

namespace gpusnoop {
namespace {

const Histogram& measured(const Group& group, Measure measure)
{
    switch (measure) {
    case Measure::grid:
        return group.blocks;
    case Measure::block:
        return group.threads;
    default:
        return group.duration;
    }
}

std::string_view unit_of(const Context& context)
{
    switch (context.settings.histogram) {
    case Measure::grid:
        return "blocks";
    case Measure::block:
        return "threads";
    default:
        return context.options.unit_name();
    }
}

Label label_of(const GroupKey& key, const Group& group, const Context& context)
{
    const View& view = context.settings.view;
    Label label;
    label.fields.emplace_back("measure", context.settings.measure);
    label.add_who(view.who, key.who, group.who, context.processes);
    if (view.stream)
        label.add("stream", fmt::format("0x{:x}", key.stream));
    if (view.device && key.device != DEVICE_UNKNOWN)
        label.add("device", uint64_t{key.device});
    if (view.layer)
        label.add("layer", std::string(key.layer ? "runtime" : "driver"));
    if (view.kernel)
        label.add("kernel", launch_name(key));
    return label;
}

} // namespace

void print_histograms(Output& output, const LaunchGroups& groups, const Context& context, uint64_t wall_ns)
{
    for (const auto& [key, group] : groups.groups()) {
        const Label label = label_of(key, group, context);
        output.histogram(label.title, unit_of(context), measured(group, context.settings.histogram), label.fields,
                         wall_ns);
    }
}

} // namespace gpusnoop
