// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_message.hpp"

#include "reader/message.hpp"

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

} // namespace gpusnoop
