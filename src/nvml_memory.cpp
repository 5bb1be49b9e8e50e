// SPDX-License-Identifier: Apache-2.0
#include "nvml_memory.hpp"

#include "error.hpp"

#include <fmt/format.h>

namespace gpusnoop {

NvmlMemory::NvmlMemory(const std::string& library)
{
    if (library == "off")
        return;
    std::string why;
    nvml_ = library.empty() ? Nvml::open(why) : Nvml::open(why, {library, {}});
    if (!nvml_ && !library.empty())
        throw Error(why, "leave out --nvml, or name the driver's libnvidia-ml.so.1");
    if (!nvml_)
        verbose(why);
}

void NvmlMemory::refresh()
{
    bytes_.clear();
    if (!nvml_)
        return;
    for (const NvmlProcess& process : nvml_->processes()) {
        auto [item, first] = bytes_.emplace(process.pid, process.bytes);
        if (!first && item->second && process.bytes)
            *item->second += *process.bytes;
        else if (!first)
            item->second.reset();
    }
    for (const NvmlFailure& failure : nvml_->failures())
        if (complained_.insert(failure.device).second)
            warn(fmt::format("NVML does not say what processes hold of device {}: {}", failure.device, failure.why));
}

std::optional<uint64_t> NvmlMemory::of(const std::set<ImageId>& images) const
{
    std::optional<uint64_t> sum;
    std::set<uint32_t> pids; // a process that has called exec is two images
    for (const ImageId& image : images)
        pids.insert(image.pid);
    for (uint32_t pid : pids) {
        auto found = bytes_.find(pid);
        if (found == bytes_.end())
            continue;
        if (!found->second)
            return std::nullopt;
        sum = sum.value_or(0) + *found->second;
    }
    return sum;
}

} // namespace gpusnoop
