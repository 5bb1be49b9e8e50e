// SPDX-License-Identifier: Apache-2.0
#include "tools/cudalaunch/columns.hpp"

#include "rows/label.hpp"

namespace gpusnoop::cudalaunch {
namespace {

const Histogram& measured(const LaunchGroup& group, Measure measure)
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
    switch (context.settings.histogram_of) {
    case Measure::grid:
        return "blocks";
    case Measure::block:
        return "threads";
    default:
        return context.options.unit_name();
    }
}

Label label_of(const LaunchKey& key, const LaunchGroup& group, const Context& context)
{
    Label label;
    label.fields.emplace_back("measure", context.settings.measure);
    label.add_call(context.settings.view, key, group.who, context.processes, context.probes);
    if (context.settings.kernel)
        label.add("kernel", launch_name(key));
    return label;
}

} // namespace

void print_histograms(Output& output, const LaunchGroups& groups, const Context& context, uint64_t wall_ns)
{
    for (const auto& [key, group] : groups.groups()) {
        const Label label = label_of(key, group, context);
        output.histogram(label.title, unit_of(context), measured(group, context.settings.histogram_of), label.fields,
                         wall_ns);
    }
}

} // namespace gpusnoop::cudalaunch
