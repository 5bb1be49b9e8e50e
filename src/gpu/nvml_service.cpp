// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_service.hpp"

#include "gpu/amd.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gpusnoop {

static void fields(auto& each, same_as_const<NvmlProcess> auto& p)
{
    each(p.pid, p.device, p.bytes, p.gpu_instance, p.compute_instance);
}

static void fields(auto& each, same_as_const<NvmlFailure> auto& f)
{
    each(f.device, f.why);
}

static void fields(auto& each, same_as_const<NvmlUse> auto& u)
{
    each(u.pid, u.device, u.sm_percent, u.cu_percent, u.sdma_percent);
}

static void fields(auto& each, same_as_const<NvmlEfficiency> auto& e)
{
    each(e.sm_active, e.sm_occupancy, e.tensor_active, e.dram_active);
}

static void fields(auto& each, same_as_const<NvmlComputeInstance> auto& c)
{
    each(c.number, c.uuid, c.slices);
}

static void fields(auto& each, same_as_const<NvmlInstance> auto& i)
{
    each(i.gpu_instance, i.parts, i.name, i.slices, i.efficiency);
}

static void fields(auto& each, same_as_const<NvmlDeviceState> auto& s)
{
    each(s.index, s.minor, s.name, s.pci, s.uuid, s.utilization, s.memory_used, s.memory_total, s.power_watts, s.mig,
         s.efficiency, s.slices, s.instances, s.vendor);
}

static void fields(auto& each, same_as_const<NvmlAnswers> auto& a)
{
    each(a.why, a.processes, a.failures, a.use, a.states);
}

std::string to_bytes(const NvmlAnswers& answers)
{
    return message_of(answers);
}

std::optional<NvmlAnswers> answers_from(std::string_view bytes)
{
    return read_message<NvmlAnswers>(bytes);
}

namespace {

// Opens NVIDIA's library and AMD's devices, if they exist. If neither exists, stores the reason in `why`.
std::vector<std::unique_ptr<Nvml>> open_all(const NvmlPlaces& places, std::string& why)
{
    std::vector<std::unique_ptr<Nvml>> all;
    if (auto nvml = Nvml::open(why, places))
        all.push_back(std::move(nvml));
    else if (places.is_named)
        return all;
    if (auto amd = open_amd_gpus(all.empty() ? 0 : all.front()->devices(), places.root))
        all.push_back(std::move(amd));
    if (!all.empty())
        why.clear(); // AMD's devices suffice, even if NVML has failed
    return all;
}

template<class T>
void append(std::vector<T>& to, const std::vector<T>& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

} // namespace

void serve_nvml(const NvmlPlaces& places, bool devices, Connection& owner)
{
    if (!owner.receive())
        return;
    NvmlAnswers first;
    const std::vector<std::unique_ptr<Nvml>> all = open_all(places, first.why);
    if (devices)
        for (const auto& one : all) { // the first calls only start the measurements
            one->process_use();
            one->states();
        }
    if (!send_in_parts(owner, to_bytes(first)))
        return;
    while (!all.empty() && owner.receive()) {
        NvmlAnswers answers;
        for (const auto& one : all) {
            append(answers.processes, one->processes());
            append(answers.failures, one->failures());
            if (!devices)
                continue;
            append(answers.use, one->process_use());
            append(answers.states, one->states());
        }
        if (!send_in_parts(owner, to_bytes(answers)))
            return;
    }
}

} // namespace gpusnoop
