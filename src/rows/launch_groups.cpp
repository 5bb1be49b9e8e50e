// SPDX-License-Identifier: Apache-2.0
#include "rows/launch_groups.hpp"

#include "names/kernel_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

std::string shown_kernel(const std::string& name, std::string_view how)
{
    return how == "full" ? name : how == "base" ? base_of_kernel(name) : shorten_kernel(name, 48);
}

} // namespace

std::optional<bool> has_few_blocks(const call_key& key)
{
    if (key.kind != KIND_LAUNCH || key.launch.blocks == BUCKET_NONE)
        return {};
    return key.launch.blocks < histogram_bucket(FEW_BLOCKS);
}

void LaunchGroup::count(const CallDelta& delta)
{
    const call_key& key = delta.key;
    if (key.flags & CALL_RECORDED)
        captured += delta[CALL_COUNT];
    else if (key.kind == KIND_GRAPH_LAUNCH)
        graphs += delta[CALL_COUNT];
    else if (key.kind == KIND_HOST_FUNC)
        host_functions += delta[CALL_COUNT];
    else {
        kernels += delta[CALL_COUNT];
        if (const auto few = has_few_blocks(key)) {
            grids += delta[CALL_COUNT];
            small_grids += *few ? delta[CALL_COUNT] : 0;
        }
    }
}

void LaunchGroup::add(const CallDelta& delta, bool failed_apart)
{
    const call_key& key = delta.key;
    if (part_of(key) == CallPart::graph) {
        graph_kernels += delta[GRAPH_KERNELS];
        graphs_unknown += delta[GRAPH_UNKNOWN];
    }
    if (!key.result || !failed_apart)
        count(delta);
    if (key.result)
        errors += delta[CALL_COUNT];
    total_ns += delta[CALL_TOTAL_NS];
    max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
    if (key.launch.blocks != BUCKET_NONE)
        blocks.add(key.launch.blocks, delta[CALL_COUNT]);
    if (key.launch.threads != BUCKET_NONE)
        threads.add(key.launch.threads, delta[CALL_COUNT]);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, delta[CALL_COUNT]);
    if (key.kind == KIND_LAUNCH && delta[CALL_LAST] >= last) {
        last = delta[CALL_LAST];
        shape = delta.shape();
        shaped = true;
    }
}

std::string launch_name(const LaunchKey& key)
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

// Shortens the kernel's name before launch_name() adds brackets.
std::string shown_name(const LaunchKey& key, std::string_view how)
{
    LaunchKey shown = key;
    shown.kernel = shown_kernel(key.kernel, how);
    return launch_name(shown);
}

void LaunchKey::set(const LaunchSettings& settings, const call_key& call)
{
    if (!settings.kernel)
        return;
    kind = call.kind;
    handle = call.subject;
}

void LaunchGroups::add(const CallDelta& delta)
{
    const call_key& call = delta.key;
    LaunchKey key = key_of(call);
    NameSource source = NameSource::none;
    if (settings_.kernel && call.kind != KIND_GRAPH_LAUNCH) {
        KernelName name = names_.name(call.image, call.subject).value_or(KernelName());
        key.kernel = std::move(name.text);
        source = name.source;
    }
    // Kernels with the same name share a row even if several processes launch them. A handle identifies a kernel only
    // within its process.
    if (!key.kernel.empty())
        key.handle = 0;
    if (key.handle)
        key.who.set_process(call.image, processes_);
    LaunchGroup& group = group_at(key, call);
    group.who.vendors |= vendor_bit(call);
    group.name_source = std::max(group.name_source, source);
    group.add(delta, settings_.failed_apart);
}

} // namespace gpusnoop
