// SPDX-License-Identifier: Apache-2.0
#include "spend/machine_gpus.hpp"

#include "util/text.hpp"
#include "who/host_files.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr size_t most_gpus = 256;

std::optional<unsigned> number(std::string_view text)
{
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<MachineGpu> gpus_of_driver(const std::string& host_root)
{
    const HostFiles host(host_root);
    const std::string folder = "proc/driver/nvidia/gpus";
    std::vector<std::string> places = host.list(folder);
    std::ranges::sort(places); // in PCI order, as nvidia-smi numbers them
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
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const size_t colon = line.find(':');
        if (colon == std::string_view::npos)
            continue;
        const size_t from = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
        const std::string_view key = line.substr(0, colon), value = line.substr(from);
        // It is masked with question marks until somebody has opened the device.
        if (key.starts_with("GPU UUID") && value.starts_with("GPU-") && value.find('?') == std::string_view::npos)
            gpu.id = printable(value.substr(0, 64));
        else if (key.starts_with("Model"))
            gpu.model = printable(value.substr(0, 96));
        else if (key.starts_with("Device Minor"))
            gpu.minor = number(value);
    }
    return gpu;
}

void MachineGpus::learn(const MachineGpu& gpu)
{
    const auto known = std::ranges::find_if(
        all_, [&](const MachineGpu& one) { return one.index == gpu.index && (gpu.index || one.id == gpu.id); });
    if (known == all_.end()) {
        if (all_.size() < most_gpus)
            all_.push_back(gpu);
        return;
    }
    if (known->model.empty())
        known->model = gpu.model;
    if (gpu.minor)
        known->minor = gpu.minor;
}

void MachineGpus::refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet)
{
    if ((source_.empty() || source_ == "nvml") && !nvml.states().empty()) {
        source_ = "nvml";
        for (const NvmlDeviceState& state : nvml.states())
            learn({.id = !state.uuid.empty()  ? state.uuid
                         : !state.pci.empty() ? state.pci
                                              : fmt::format("gpu {}", state.index),
                   .model = state.name,
                   .index = state.index,
                   .minor = state.minor});
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

const MachineGpu* MachineGpus::at(const Gpu& gpu) const
{
    for (const MachineGpu& one : all_)
        if ((gpu.by == Gpu::By::index && one.index == gpu.number) ||
            (gpu.by == Gpu::By::file && one.minor == gpu.number))
            return &one;
    return nullptr;
}

const MachineGpu* MachineGpus::named(std::string_view name) const
{
    const std::optional<unsigned> index = number(name);
    for (const MachineGpu& one : all_)
        if (one.id == name || (index && one.index == index))
            return &one;
    return nullptr;
}

} // namespace gpusnoop
