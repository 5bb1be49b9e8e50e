// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/machine_gpus.hpp"

#include "base/text.hpp"
#include "tools/gpuspend/ledger.hpp"
#include "who/host_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace gpusnoop {
namespace {

constexpr size_t max_gpus = 256;

std::vector<MachineGpu> gpus_of_driver(const std::string& host_root)
{
    const HostFiles host(host_root);
    const std::string folder = "proc/driver/nvidia/gpus";
    std::vector<std::string> places = host.list(folder);
    std::ranges::sort(places); // in PCI order, like nvidia-smi
    std::vector<MachineGpu> gpus;
    for (const std::string& place : places)
        if (const auto text = host.read(folder + "/" + place + "/information"))
            gpus.push_back(parse_gpu_information(*text, printable(place)));
    for (size_t i = 0; i < gpus.size(); i++)
        gpus[i].index = static_cast<unsigned>(i);
    return gpus;
}

} // namespace

MachineGpu parse_gpu_information(std::string_view text, const std::string& place)
{
    MachineGpu gpu{.id = place, .model = {}, .index = {}, .minor = {}};
    for_each_field(text, [&](std::string_view key, std::string_view value) {
        // The UUID is masked by question marks until the device is opened for the first time.
        if (key.starts_with("GPU UUID") && value.starts_with("GPU-") && value.find('?') == std::string_view::npos)
            gpu.id = printable(value.substr(0, 64));
        else if (key.starts_with("Model"))
            gpu.model = printable(value.substr(0, 96));
        else if (key.starts_with("Device Minor"))
            gpu.minor = parse_number<unsigned>(value);
    });
    return gpu;
}

void MachineGpus::learn(const MachineGpu& gpu)
{
    const auto known = std::ranges::find_if(all_, [&](const MachineGpu& one) {
        return one.index == gpu.index && one.instance == gpu.instance && one.compute == gpu.compute &&
               (gpu.index || one.id == gpu.id);
    });
    if (known == all_.end()) {
        if (all_.size() < max_gpus)
            all_.push_back(gpu);
        return;
    }
    if (known->model.empty())
        known->model = gpu.model;
    if (gpu.minor)
        known->minor = gpu.minor;
    known->slices = gpu.slices;
    if (gpu.instance) // the instance may have been recreated with the same number
        known->id = gpu.id;
}

// Returns the compute instances of the GPU instance if there are several; otherwise, the GPU instance itself.
std::vector<MachineGpu> MachineGpus::parts_of(const MachineGpu& whole, const NvmlInstance& instance)
{
    MachineGpu part{.id = fmt::format("{}/gi{}", whole.id, instance.gpu_instance),
                    .model = whole.model,
                    .index = whole.index,
                    .minor = whole.minor,
                    .instance = static_cast<uint16_t>(instance.gpu_instance),
                    .device = whole.id,
                    .slices = instance.slices};
    if (!instance.divided()) {
        if (!instance.parts.empty() && !instance.parts.front().uuid.empty())
            part.id = instance.parts.front().uuid;
        return {part};
    }
    unsigned sum = 0;
    for (const NvmlComputeInstance& compute : instance.parts)
        sum += compute.slices;
    const bool is_possible =
        sum <= instance.slices && std::ranges::all_of(instance.parts, &NvmlComputeInstance::slices);
    std::vector<MachineGpu> all;
    for (const NvmlComputeInstance& compute : instance.parts) {
        all.push_back(part);
        all.back().id = compute.uuid.empty() ? fmt::format("{}/ci{}", part.id, compute.number) : compute.uuid;
        all.back().compute = static_cast<uint16_t>(compute.number);
        all.back().slices =
            is_possible ? compute.slices : instance.slices / static_cast<unsigned>(instance.parts.size());
    }
    return all;
}

// Replaces the known MIG instances of a device with the current ones.
void MachineGpus::learn_instances(const NvmlDeviceState& state)
{
    const auto device =
        std::ranges::find_if(all_, [&](const MachineGpu& one) { return one.index == state.index && !one.instance; });
    if (device == all_.end() || !state.mig) // the device failed, so its instances are unknown
        return;
    const MachineGpu whole = *device;
    std::vector<MachineGpu> parts;
    for (const NvmlInstance& instance : state.instances)
        std::ranges::move(parts_of(whole, instance), std::back_inserter(parts));
    std::erase_if(all_, [&](const MachineGpu& one) {
        return one.instance && one.index == state.index && std::ranges::none_of(parts, [&](const MachineGpu& part) {
                   return part.instance == one.instance && part.compute == one.compute;
               });
    });
    for (const MachineGpu& part : parts)
        learn(part);
}

void MachineGpus::refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet)
{
    if ((source_.empty() || source_ == "nvml" || source_ == "sysfs") && !nvml.states().empty()) {
        const bool all_amd = std::ranges::all_of(
            nvml.states(), [](const NvmlDeviceState& state) { return state.vendor == GpuVendor::amd; });
        source_ = all_amd ? "sysfs" : "nvml";
        for (const NvmlDeviceState& state : nvml.states()) {
            learn({.id = !state.uuid.empty()  ? state.uuid
                         : !state.pci.empty() ? state.pci
                                              : fmt::format("gpu {}", state.index),
                   .model = state.name,
                   .index = state.index,
                   .minor = state.minor,
                   .slices = state.slices});
            learn_instances(state);
        }
    }
    if (!source_.empty())
        return;
    for (const MachineGpu& gpu : gpus_of_driver(host_root)) {
        source_ = "driver";
        learn(gpu);
    }
    if (!source_.empty())
        return;
    for (const auto& [id, parts] : kubelet.parts)
        if (id.starts_with("GPU-")) {
            source_ = "kubelet";
            learn({.id = printable(id), .model = {}, .index = {}, .minor = {}});
        }
}

// If MIG divides the device, returns the instance that `gpu` names. If `gpu` names none, returns the only instance, or
// null if there are several.
const MachineGpu* MachineGpus::at(const Gpu& gpu) const
{
    const MachineGpu* found = nullptr;
    unsigned instances = 0;
    for (const MachineGpu& one : all_) {
        if ((gpu.by != Gpu::By::index || one.index != gpu.number) &&
            (gpu.by != Gpu::By::file || one.minor != gpu.number))
            continue;
        if (gpu.instance != Gpu::whole && one.instance == gpu.instance && (!one.compute || one.compute == gpu.compute))
            return &one;
        instances += one.instance.has_value();
        if (!found || one.instance)
            found = &one;
    }
    return instances == 0 || (instances == 1 && gpu.instance == Gpu::whole) ? found : nullptr;
}

bool MachineGpus::divided() const
{
    return std::ranges::any_of(all_, [](const MachineGpu& one) { return one.instance.has_value(); });
}

std::vector<uint64_t> MachineGpus::times(uint64_t ns) const
{
    std::vector<uint64_t> times(all_.size(), ns);
    for (size_t i = 0; i < all_.size(); i++) {
        if (all_[i].instance)
            continue;
        std::vector<size_t> parts;
        std::vector<uint64_t> weights;
        uint64_t sum = 0;
        for (size_t k = 0; k < all_.size(); k++)
            if (all_[k].instance && all_[k].device == all_[i].id) {
                parts.push_back(k);
                weights.push_back(std::max(all_[k].slices, 1u));
                sum += weights.back();
            }
        if (parts.empty())
            continue;
        parts.push_back(i);
        weights.push_back(all_[i].slices > sum ? all_[i].slices - sum : 0);
        const std::vector<uint64_t> shares = gpusnoop::divided(ns, weights);
        for (size_t k = 0; k < parts.size(); k++)
            times[parts[k]] = shares[k];
    }
    return times;
}

const MachineGpu* MachineGpus::named(std::string_view name) const
{
    const std::optional<unsigned> index = parse_number<unsigned>(name);
    for (const MachineGpu& one : all_)
        if (one.id == name || (index && one.index == index && !one.instance))
            return &one;
    return nullptr;
}

} // namespace gpusnoop
