// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_mig.hpp"

#include "gpu/nvml_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace gpusnoop {
namespace {

constexpr unsigned most_slices = 16; // 7 of A100, H100 and B200, 4 of A30

// nvmlDeviceAttributes_t
struct Attributes {
    std::array<uint32_t, 6> others;
    uint32_t gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

// The number before the last such mark.
unsigned number_before(std::string_view name, std::string_view mark)
{
    const size_t behind = name.rfind(mark);
    if (behind == std::string_view::npos || behind == 0)
        return 0;
    const size_t from = name.find_last_not_of("0123456789", behind - 1) + 1;
    unsigned count = 0;
    std::from_chars(name.data() + from, name.data() + behind, count);
    return count <= most_slices ? count : 0;
}

} // namespace

NvmlMig::NvmlMig(const NvmlSymbols& symbols)
{
    symbols.find(most_, {"nvmlDeviceGetMaxMigDeviceCount"});
    symbols.find(handle_, {"nvmlDeviceGetMigDeviceHandleByIndex"});
    symbols.find(gpu_instance_, {"nvmlDeviceGetGpuInstanceId"});
    symbols.find(compute_instance_, {"nvmlDeviceGetComputeInstanceId"});
    symbols.find(attributes_, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"});
    symbols.find(name_, {"nvmlDeviceGetName"});
    symbols.find(uuid_, {"nvmlDeviceGetUUID"});
}

// Else by the profile in its name: "... MIG 1c.3g.40gb" is one of an instance of 3, "... MIG 3g.40gb" all of it.
NvmlMig::Slices NvmlMig::slices(NvmlDevice mig, std::string_view name) const
{
    struct {
        Attributes attributes{};
        std::array<unsigned char, 256> more{}; // what writes more than it should stays inside
    } answer;
    const Attributes& told = answer.attributes;
    if (attributes_ && attributes_(mig, &answer) == NVML_OK && told.gpu_instance_slices <= most_slices &&
        told.compute_instance_slices <= told.gpu_instance_slices)
        return {told.gpu_instance_slices, told.compute_instance_slices};
    const unsigned all = number_before(name, "g."), part = number_before(name, "c.");
    return {all, part ? std::min(part, all) : all};
}

void NvmlMig::add(NvmlDevice device, NvmlDeviceState& state) const
{
    unsigned most = 0;
    if (!most_ || !handle_ || !gpu_instance_ || most_(device, &most) != NVML_OK)
        return;
    state.slices = most = std::min(most, most_slices);
    std::map<uint32_t, NvmlInstance> instances;
    for (unsigned i = 0; i < most; i++) {
        NvmlDevice mig = nullptr;
        unsigned id = 0;
        if (handle_(device, i, &mig) != NVML_OK || gpu_instance_(mig, &id) != NVML_OK || !nvml_has_instance(id))
            continue; // the numbers of those that are there need not follow each other
        NvmlInstance& instance = instances[id];
        instance.gpu_instance = id;
        const std::string name = nvml_text(name_, mig), uuid = nvml_text(uuid_, mig);
        if (instance.name.empty())
            instance.name = name;
        const Slices slices = this->slices(mig, name);
        if (!instance.slices)
            instance.slices = slices.of_gpu_instance;
        unsigned number = 0;
        if (!compute_instance_ || compute_instance_(mig, &number) != NVML_OK || !nvml_has_instance(number))
            number = static_cast<unsigned>(instance.parts.size());
        instance.parts.push_back({number, uuid, slices.of_compute_instance});
    }
    for (auto& [id, instance] : instances)
        state.instances.push_back(std::move(instance));
}

} // namespace gpusnoop
