// SPDX-License-Identifier: Apache-2.0
#include "cudalaunch_columns.hpp"

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

// "pid = 123, comm = python" and the same as JSON fields.
struct Label {
    std::vector<std::pair<std::string_view, Cell>> fields;
    std::string title;

    void add(std::string_view name, Cell value, std::string_view text)
    {
        fields.emplace_back(name, std::move(value));
        title += fmt::format("{}{} = {}", title.empty() ? "" : ", ", name, text);
    }
    void add(std::string_view name, uint64_t value) { add(name, value, fmt::format("{}", value)); }
    void add(std::string_view name, const std::string& value) { add(name, value, value); }
};

Label label_of(const GroupKey& key, const Group& group, const Context& context)
{
    const View& view = context.settings.view;
    Label label;
    label.fields.emplace_back("measure", context.settings.measure);
    if (view.pid) {
        label.add("pid", uint64_t{key.pid});
        label.add("comm", context.processes.info(*group.images.rbegin()).comm);
    } else if (view.comm) {
        label.add("comm", key.comm);
    }
    if (view.thread)
        label.add("tid", uint64_t{key.tid});
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
