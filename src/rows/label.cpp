// SPDX-License-Identifier: Apache-2.0
#include "rows/label.hpp"

#include "names/code_places.hpp"
#include "rows/call_fields.hpp"

#include <fmt/format.h>

namespace gpusnoop {

void Label::add(std::string_view name, const Cell& value)
{
    std::string text;
    if (const auto* string = std::get_if<std::string>(&value))
        text = *string;
    else if (const auto* number = std::get_if<uint64_t>(&value))
        text = fmt::format("{}", *number);
    else
        return;
    fields.emplace_back(name, value);
    title += fmt::format("{}{} = {}", title.empty() ? "" : ", ", name, text);
}

void Label::add_who(const WhoView& view, const WhoKey& key, const WhoSeen& seen, Processes& processes)
{
    auto add_owner = [&](std::string_view name, OwnerPart part) { add(name, owner_cell(seen, part)); };
    if (view.pod_namespace || view.pod)
        add_owner("namespace", OwnerPart::pod_namespace);
    if (view.pod) {
        add_owner("pod", OwnerPart::pod);
        add_owner("pod_uid", OwnerPart::pod_uid);
    }
    if (view.container) {
        add_owner("container", OwnerPart::container);
        add_owner("container_id", OwnerPart::container_id);
    }
    if (view.cgroup)
        add_owner("cgroup", OwnerPart::cgroup);
    if (view.pid)
        add("pid", pid_cell(seen));
    if (view.pid || view.comm)
        add("comm", comm_cell(key, seen, processes));
    if (view.thread) {
        add("tid", uint64_t{key.tid});
        add("thread_comm", thread_comm_cell(key, seen, processes));
    }
}

void Label::add_stream(const CallView& view, uint64_t stream)
{
    if (view.stream)
        add("stream", fmt::format("0x{:x}", stream));
}

void Label::add_call(const CallView& view, const CallKey& key, const WhoSeen& seen, Processes& processes,
                     std::span<const Probe> probes)
{
    add_who(view.who, key.who, seen, processes);
    add_stream(view, key.stream);
    if (view.device && key.device != DEVICE_UNKNOWN)
        add("device", uint64_t{key.device});
    if (view.places && key.place >= 0)
        add("line", line_text(view.places->place(key.place)));
    if (view.layer)
        add("layer", layer_name(key.layer));
    if (view.function)
        add("function", function_name(probes, key.function));
    if (view.result) {
        add("result", result_name(library_of(key.layer), key.result));
        fields.emplace_back("result_code", int64_t{key.result});
    }
}

} // namespace gpusnoop
