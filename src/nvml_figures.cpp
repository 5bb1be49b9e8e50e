// SPDX-License-Identifier: Apache-2.0
#include "nvml_figures.hpp"

#include "error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace gpusnoop {
namespace {

// What it says of each process. A process that has called exec is two images.
template<class Figure>
std::vector<Figure> of_processes(const std::multimap<uint32_t, Figure>& figures, const std::set<ImageId>& images)
{
    std::set<uint32_t> pids;
    for (const ImageId& image : images)
        pids.insert(image.pid);
    std::vector<Figure> found;
    for (uint32_t pid : pids)
        for (auto [item, end] = figures.equal_range(pid); item != end; ++item)
            found.push_back(item->second);
    return found;
}

template<class Figure>
std::multimap<uint32_t, Figure> by_pid(const std::vector<Figure>& figures)
{
    std::multimap<uint32_t, Figure> map;
    for (const Figure& figure : figures)
        map.emplace(figure.pid, figure);
    return map;
}

} // namespace

NvmlFigures::NvmlFigures(const std::string& library, const NvmlQuestions& questions) : questions_(questions)
{
    if (library == "off") {
        why_ = "NVML is not to be asked (--nvml off)";
        return;
    }
    nvml_ = library.empty() ? Nvml::open(why_) : Nvml::open(why_, {library, {}});
    if (nvml_) {
        why_.clear(); // of places that were tried first
        if (questions_.devices)
            nvml_->process_use();
        return;
    }
    if (!library.empty())
        throw Error(why_, "leave out --nvml, or name the driver's libnvidia-ml.so.1");
    verbose(why_);
}

void NvmlFigures::refresh(uint64_t now_ns)
{
    // A caller's timer of the same interval is a little early at times.
    if (!nvml_ || now_ns + questions_.interval_ns / 20 < due_ns_)
        return;
    due_ns_ = std::max(due_ns_, now_ns) + questions_.interval_ns;
    processes_ = by_pid(nvml_->processes());
    for (const NvmlFailure& failure : nvml_->failures())
        if (complained_.insert(failure.device).second)
            warn(fmt::format("NVML does not say what processes hold of device {}: {}", failure.device, failure.why));
    if (!questions_.devices)
        return;
    use_ = by_pid(nvml_->process_use());
    states_ = nvml_->states();
}

std::optional<uint64_t> NvmlFigures::memory_of(const std::set<ImageId>& images) const
{
    std::optional<uint64_t> sum;
    for (const NvmlProcess& process : of_processes(processes_, images)) {
        if (!process.bytes)
            return std::nullopt;
        sum = sum.value_or(0) + *process.bytes;
    }
    return sum;
}

std::optional<double> NvmlFigures::sm_percent_of(const std::set<ImageId>& images) const
{
    std::optional<double> sum;
    for (const NvmlUse& use : of_processes(use_, images))
        sum = sum.value_or(0) + use.sm_percent;
    return sum;
}

std::optional<std::string> NvmlFigures::instance_of(const std::set<ImageId>& images) const
{
    std::set<std::tuple<unsigned, std::optional<uint32_t>, std::optional<uint32_t>>> instances;
    for (const NvmlProcess& process : of_processes(processes_, images))
        instances.emplace(process.device, process.gpu_instance, process.compute_instance);
    if (instances.size() != 1)
        return std::nullopt;
    const auto& [device, gpu, compute] = *instances.begin();
    if (!gpu)
        return std::nullopt;
    return compute ? fmt::format("gi {} ci {}", *gpu, *compute) : fmt::format("gi {}", *gpu);
}

std::set<unsigned> NvmlFigures::devices_of(const std::set<ImageId>& images) const
{
    std::set<unsigned> devices;
    for (const NvmlProcess& process : of_processes(processes_, images))
        devices.insert(process.device);
    return devices;
}

} // namespace gpusnoop
