// SPDX-License-Identifier: Apache-2.0
#include "rows/gap_launches.hpp"

#include "bpf/shared/probe.h"

#include <fmt/format.h>

namespace gpusnoop {

std::string_view GapLaunch::what() const
{
    switch (call.kind) {
    case KIND_GRAPH_LAUNCH:
        return "graph";
    case KIND_HOST_FUNC:
        return "host function";
    case KIND_LAUNCH_LIST:
        return "kernels of several devices";
    }
    return "kernel";
}

std::string GapLaunch::text(std::string_view how) const
{
    if (call.kind == KIND_LAUNCH_LIST)
        return std::string(what());
    LaunchKey key;
    key.kind = static_cast<uint8_t>(call.kind);
    key.handle = call.handle;
    key.kernel = kernel.text;
    const std::string name = shown_name(key, how);
    return what() == "kernel" && kernel.text.empty() ? fmt::format("kernel {} without a name", name) : name;
}

GapLaunch LaunchNames::named(const ImageId& image, const gap_launch& launch)
{
    GapLaunch named{.call = launch};
    if (launch.kind == KIND_GRAPH_LAUNCH || launch.kind == KIND_LAUNCH_LIST)
        return named;
    named.kernel = names_.name(image, launch.handle).value_or(KernelName());
    if (named.kernel.text.empty() && launch.kind == KIND_LAUNCH)
        unnamed_.add(image, launch.handle);
    return named;
}

GapLaunches LaunchNames::of(const gap_record& gap)
{
    return {named(gap.key.image, gap.before), named(gap.key.image, gap.after)};
}

bool LaunchNames::tick()
{
    names_.tick();
    unnamed_.retry(names_);
    return naming_.tick(unnamed_.size());
}

void LaunchNames::forget(const ImageId& image)
{
    unnamed_.forget(image);
    names_.forget(image);
}

} // namespace gpusnoop
