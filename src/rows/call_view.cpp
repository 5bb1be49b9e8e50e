// SPDX-License-Identifier: Apache-2.0
#include "rows/call_view.hpp"

#include "base/text.hpp"
#include "names/code_places.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

void parse_dimensions(std::string_view list, std::string_view all, const std::function<bool(std::string_view)>& set)
{
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string_view name = list.substr(at, end - at);
        if (!set(name))
            throw UsageError(fmt::format("--by takes {}, or several of them separated by commas, not '{}'{}", all, name,
                                         suggestion(name, all)));
    }
}

void parse_by(std::string_view list, CallView& view, std::span<const Dimension> own, bool of_functions)
{
    const Dimension of_function[] = {{"stream", &view.stream},
                                     {"device", &view.device},
                                     {"api", &view.function},
                                     {"line", &view.line},
                                     {"function", &view.code}};
    const std::span<const Dimension> shared(of_function, of_functions ? std::size(of_function) : 0);
    const auto find = [](std::span<const Dimension> dimensions, std::string_view name) {
        auto found = std::ranges::find(dimensions, name, &Dimension::first);
        if (found != dimensions.end())
            *found->second = true;
        return found != dimensions.end();
    };
    std::string names;
    for (std::span<const Dimension> dimensions : {own, shared})
        for (const Dimension& dimension : dimensions)
            names += fmt::format("{}, ", dimension.first);
    names += WhoView::names;
    parse_dimensions(list, names, [&](std::string_view name) {
        return find(own, name) || find(shared, name) || view.who.parse(name);
    });
    view.who.pid |= view.stream; // different processes may have streams with the same handle
}

size_t measure_number(std::string_view asked, std::span<const std::string_view> names)
{
    if (asked.empty())
        return 0;
    const auto found = std::ranges::find(names, asked);
    if (found != names.end())
        return static_cast<size_t>(found - names.begin()) + 1;
    std::string list;
    for (size_t i = 0; i < names.size(); i++)
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
    throw UsageError(fmt::format("-H takes {}, not '{}'{}", list, asked, suggestion(asked, joined(names, ", "))));
}

void CallSettings::apply(const Options& options)
{
    driver = api != "runtime";
    runtime = api != "driver";
    view.who.pid |= options.per_process || options.per_thread;
    view.who.thread |= options.per_thread;
    view.who.owner = options.extra_columns;
    view.stack = options.user_stacks && !events;
    view.who.pid |= view.stack;
    view.layer = api == "both";
    view.vendor = of_functions;
    view.result = options.failed_only;
}

CallKey call_group(const CallView& view, Processes& processes, const call_key& key)
{
    CallKey group;
    group.who = who_key(view.who, processes, key.image, key.tid, key.cgroups);
    if (view.stream)
        group.stream = key.stream;
    if (view.device && view.gpu_of)
        group.gpu = view.gpu_of(key);
    else if (view.device)
        group.device = key.device;
    if (view.function)
        group.function = key.function;
    if (view.vendor)
        group.vendor = vendor_of(key.layer);
    // The meaning of a result number depends on the layer.
    if (view.layer || view.result)
        group.layer = key.layer;
    if (view.result)
        group.result = key.result;
    if (view.stack)
        group.who.set_process(key.image, processes);
    if (view.places) {
        group.place = view.places->number_of(key.image, key.stack, key.caller);
    } else if (view.stack) {
        group.stack = key.stack;
        group.caller = key.caller;
    }
    return group;
}

} // namespace gpusnoop
