// SPDX-License-Identifier: Apache-2.0
#include "rows/process_gpus.hpp"

#include "bpf/shared/probe.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpusnoop {

namespace {

constexpr uint64_t pause_ns = 5'000'000'000; // time between two scans of a process's open files
constexpr int max_scans = 64;                // maximum number of processes scanned in one refresh(); later calls scan
                                             // the others

Gpu ordinal(uint8_t device)
{
    return {Gpu::By::ordinal, device};
}

} // namespace

std::string_view source_name(GpuSource source)
{
    constexpr std::string_view names[] = {"", "nvml", "kfd", "files", "context"};
    return names[static_cast<size_t>(source)];
}

void ProcessGpus::note_call(const call_key& call)
{
    if (call.device != DEVICE_UNKNOWN && call.layer != LAYER_HIP)
        known_[call.image].ordinals.insert(call.device);
}

void ProcessGpus::refresh(std::span<const ImageId> running, uint64_t now_ns)
{
    for (const NvmlDeviceState& state : nvml_.states())
        if (state.minor)
            indices_[*state.minor] = state.index;
    const std::set<ImageId> all(running.begin(), running.end());
    std::erase_if(known_, [&](const auto& item) { // drop exited processes that never made a call
        return !item.first.serial && !all.contains(item.first);
    });
    int scans = 0;
    for (const ImageId& image : running) {
        Known& known = known_[image];
        std::set<Gpu> gpus = listed(image);
        const bool due = !known.read_ns || now_ns - *known.read_ns >= pause_ns;
        if (gpus.empty() && due && scans++ < max_scans) {
            known.minors = read_(static_cast<pid_t>(image.pid)).value_or(std::set<unsigned>());
            known.read_ns = now_ns;
        }
        known.on = decide(known, std::move(gpus));
    }
}

std::set<Gpu> ProcessGpus::listed(const ImageId& image) const
{
    std::set<Gpu> gpus;
    for (auto [item, end] = nvml_.processes().equal_range(image.pid); item != end; ++item) {
        const NvmlProcess& process = item->second;
        Gpu gpu{Gpu::By::index, static_cast<uint16_t>(process.device),
                static_cast<uint16_t>(process.gpu_instance.value_or(Gpu::whole))};
        if (process.compute_instance && nvml_.is_divided(process.device, gpu.instance))
            gpu.compute = static_cast<uint16_t>(*process.compute_instance);
        gpus.insert(gpu);
    }
    return gpus;
}

OnGpus ProcessGpus::decide(const Known& known, std::set<Gpu> listed) const
{
    if (!listed.empty()) {
        const bool is_amd = nvml_.source_of(listed.begin()->number) == "kfd";
        return {is_amd ? GpuSource::kfd : GpuSource::nvml, std::move(listed), {}};
    }
    std::set<Gpu> files;
    for (const unsigned minor : known.minors) {
        const auto index = indices_.find(minor);
        files.insert(index == indices_.end() ? Gpu{Gpu::By::file, static_cast<uint16_t>(minor)}
                                             : Gpu{Gpu::By::index, static_cast<uint16_t>(index->second)});
    }
    if (files.size() == 1 && known.ordinals.size() <= 1)
        return {GpuSource::files, std::move(files), {}};
    OnGpus on{known.ordinals.empty() ? GpuSource::none : GpuSource::context, {}, std::move(files)};
    for (const uint8_t device : known.ordinals)
        on.gpus.insert(ordinal(device));
    return on;
}

OnGpus ProcessGpus::of(const ImageId& image) const
{
    const auto found = known_.find(image);
    return found == known_.end() ? OnGpus() : found->second.on;
}

OnGpus ProcessGpus::of(const std::set<ImageId>& images) const
{
    OnGpus all;
    bool same = true;
    for (const ImageId& image : images) {
        OnGpus on = of(image);
        if (!on.gpus.empty()) {
            same &= all.gpus.empty() || all.source == on.source;
            all.source = on.source;
        }
        all.gpus.merge(on.gpus);
        all.possible.merge(on.possible);
    }
    if (!same)
        all.source = GpuSource::none;
    return all;
}

Gpu ProcessGpus::of_call(const call_key& call) const
{
    if (const auto found = known_.find(call.image); found != known_.end()) {
        const auto& [ordinals, minors, read_ns, on] = found->second;
        // If the process has made calls on several devices, a list with a single GPU is out of date.
        if (on.gpus.size() == 1 && on.gpus.begin()->is_machine_wide() && ordinals.size() <= 1)
            return *on.gpus.begin();
    }
    // HIP numbers devices independently of CUDA.
    return call.device == DEVICE_UNKNOWN || call.layer == LAYER_HIP ? Gpu() : ordinal(call.device);
}

void ProcessGpus::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images)
        known_.erase(image);
}

} // namespace gpusnoop
