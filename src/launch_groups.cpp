// SPDX-License-Identifier: Apache-2.0
#include "launch_groups.hpp"

#include "options.hpp"
#include "probes.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

void View::parse(std::string_view list)
{
    struct Dimension {
        std::string_view name;
        bool View::*member;
    };
    constexpr Dimension dimensions[] = {
        {"kernel", &View::kernel}, {"pid", &View::pid},       {"comm", &View::comm},
        {"thread", &View::thread}, {"stream", &View::stream}, {"device", &View::device},
    };
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string_view name = list.substr(at, end - at);
        auto found = std::ranges::find(dimensions, name, &Dimension::name);
        if (found == std::end(dimensions))
            throw UsageError(fmt::format(
                "--by takes kernel, pid, comm, thread, stream or device, or several with commas, not '{}'", name));
        this->*found->member = true;
    }
    // A thread or a stream belongs to a process.
    pid |= thread || stream;
}

void Group::add(const LaunchDelta& delta)
{
    const launch_key& key = delta.key;
    images.insert(key.image);
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
    if (view_.pid || (view_.kernel && group.handle)) {
        group.pid = image.pid;
        group.start_ns = processes_.info(image).start_ns;
    }
    if (view_.comm)
        group.comm = processes_.info(image).comm;
    if (view_.thread)
        group.tid = key.tid;
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
        group.pid = image.pid;
        group.start_ns = processes_.info(image).start_ns;
    }
    return group;
}

} // namespace gpusnoop
