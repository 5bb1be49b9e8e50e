// SPDX-License-Identifier: Apache-2.0
#include "launch_groups.hpp"

#include "options.hpp"
#include "probes.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

void View::parse(std::string_view list)
{
    constexpr std::pair<std::string_view, bool View::*> dimensions[] = {
        {"kernel", &View::kernel}, {"stream", &View::stream}, {"device", &View::device}};
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string_view name = list.substr(at, end - at);
        auto found = std::ranges::find(dimensions, name, &std::pair<std::string_view, bool View::*>::first);
        if (found != std::end(dimensions))
            this->*found->second = true;
        else if (!who.parse(name))
            throw UsageError(fmt::format("--by takes kernel, stream, device, {}, or several with commas, not '{}'",
                                         WhoView::names, name));
    }
    who.pid |= stream; // a stream belongs to a process
}

void Group::add(const LaunchDelta& delta)
{
    const launch_key& key = delta.key;
    if (key.recorded)
        captured += delta.count;
    else if (key.kind == KIND_GRAPH_LAUNCH)
        graphs += delta.count;
    else if (key.kind == KIND_HOST_FUNC)
        host_functions += delta.count;
    else
        kernels += delta.count;
    if (key.result)
        errors += delta.count;
    total_ns += delta.total_ns;
    max_ns = std::max(max_ns, delta.max_ns);
    if (key.blocks != BUCKET_NONE)
        blocks.add(key.blocks, delta.count);
    if (key.threads != BUCKET_NONE)
        threads.add(key.threads, delta.count);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, delta.count);
    if (key.kind == KIND_LAUNCH && delta.last >= last) {
        last = delta.last;
        shape = delta.shape;
        shaped = true;
    }
}

std::string launch_name(const GroupKey& key)
{
    std::string name = key.kernel.empty() ? fmt::format("0x{:x}", key.handle) : key.kernel;
    switch (key.kind) {
    case KIND_GRAPH_LAUNCH:
        return fmt::format("[graph {}]", name);
    case KIND_HOST_FUNC:
        return fmt::format("[host function {}]", name);
    default:
        return name;
    }
}

GroupKey LaunchGroups::key_of(const launch_key& key)
{
    GroupKey group;
    const ImageId image = key.image;
    if (view_.kernel) {
        group.kind = key.kind;
        group.handle = key.func;
        if (key.kind != KIND_GRAPH_LAUNCH)
            group.kernel = names_.name(image, key.func).value_or("");
        // Kernels of one name are one row, whichever process launches them; a bare handle means nothing elsewhere.
        if (!group.kernel.empty())
            group.handle = 0;
    }
    group.who = who_key(view_.who, processes_, image, key.tid, key.cgroups);
    if (view_.stack || (view_.kernel && group.handle))
        group.who.set_process(image, processes_);
    if (view_.stream)
        group.stream = key.stream;
    if (view_.device)
        group.device = key.device;
    // A result is a number of its layer's own.
    if (view_.layer || view_.result)
        group.layer = key.layer;
    if (view_.result)
        group.result = key.result;
    if (view_.stack) {
        group.stack = key.stack;
        group.caller = key.caller;
    }
    return group;
}

void LaunchGroups::add(const LaunchDelta& delta)
{
    Group& group = groups_[key_of(delta.key)];
    group.add(delta);
    group.who.add(delta.key.image, processes_.owner(delta.key.image, delta.key.cgroups));
}

} // namespace gpusnoop
