// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_device.hpp"

#include "base/text.hpp"
#include "gpu/gpu_files.hpp"
#include "gpu/nvml.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace gpusnoop {

namespace {

constexpr unsigned text_length = 96;            // NVML_DEVICE_NAME_V2_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr uint32_t max_milliwatts = 10'000'000; // of what is still a device

struct Utilization {
    uint32_t gpu, memory; // percent
};

struct Memory {
    uint64_t total, free, used;
};

struct MemoryV2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
// The size and the number. The documentation's "must be 2" is refused with error 13 (driver 510.39.01).
constexpr uint32_t memory_v2 = sizeof(MemoryV2) | 2U << 24;

// The beginning of all versions of nvmlPciInfo_t.
struct Pci {
    char legacy[16];
    uint32_t domain, bus, device;
};

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
    const unsigned count = leading_number<unsigned>(name.substr(from, behind - from)).value_or(0);
    return count <= most_slices ? count : 0;
}

} // namespace

NvmlDeviceQueries::NvmlDeviceQueries(const NvmlSymbols& symbols)
{
    symbols.find(name_, {"nvmlDeviceGetName"});
    symbols.find(uuid_, {"nvmlDeviceGetUUID"});
    symbols.find(pci_, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
    symbols.find(utilization_, {"nvmlDeviceGetUtilizationRates"});
    symbols.find(memory_v2_, {"nvmlDeviceGetMemoryInfo_v2"});
    symbols.find(memory_, {"nvmlDeviceGetMemoryInfo"});
    symbols.find(power_, {"nvmlDeviceGetPowerUsage"});
    symbols.find(mig_, {"nvmlDeviceGetMigMode"});
    symbols.find(minor_, {"nvmlDeviceGetMinorNumber"});
    symbols.find(most_, {"nvmlDeviceGetMaxMigDeviceCount"});
    symbols.find(mig_handle_, {"nvmlDeviceGetMigDeviceHandleByIndex"});
    symbols.find(gpu_instance_, {"nvmlDeviceGetGpuInstanceId"});
    symbols.find(compute_instance_, {"nvmlDeviceGetComputeInstanceId"});
    symbols.find(attributes_, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"});
}

NvmlDeviceState NvmlDeviceQueries::ask(unsigned index, NvmlDevice device) const
{
    NvmlDeviceState state;
    state.index = index;
    state.name = nvml_text(name_, device);
    state.uuid = nvml_text(uuid_, device);
    state.pci = pci(device);
    state.mig = mig(device);
    state.minor = minor_number(device);
    if (state.mig.value_or(false))
        add_instances(device, state);
    else // under MIG there is no such figure, whatever a driver answers
        state.utilization = utilization(device);
    state.power_watts = power_watts(device);
    add_memory(device, state);
    return state;
}

std::string nvml_text(NvmlTextFunction function, NvmlDevice device)
{
    std::array<char, 256> room{}; // for more than was asked for, too
    if (!function || function(device, room.data(), text_length) != NVML_OK)
        return {};
    return printable({room.data(), strnlen(room.data(), text_length)});
}

// Of the numbers: the text has a domain of 4 digits in older versions, and of 8 in newer ones.
std::string NvmlDeviceQueries::pci(NvmlDevice device) const
{
    const auto at = nvml_fill<Pci>(pci_, device);
    if (!at || at->bus > 0xff || at->device > 0x1f)
        return {};
    return fmt::format("{:04x}:{:02x}:{:02x}.0", at->domain, at->bus, at->device);
}

std::optional<unsigned> NvmlDeviceQueries::utilization(NvmlDevice device) const
{
    const auto rates = nvml_fill<Utilization>(utilization_, device);
    return rates && rates->gpu <= 100 ? std::optional(rates->gpu) : std::nullopt;
}

std::optional<double> NvmlDeviceQueries::power_watts(NvmlDevice device) const
{
    const auto milliwatts = nvml_fill<uint32_t>(power_, device);
    return milliwatts && *milliwatts <= max_milliwatts ? std::optional(*milliwatts / 1000.0) : std::nullopt;
}

std::optional<bool> NvmlDeviceQueries::mig(NvmlDevice device) const
{
    unsigned current = 0, pending = 0;
    if (!mig_ || mig_(device, &current, &pending) != NVML_OK || current > 1)
        return std::nullopt;
    return current == 1;
}

std::optional<unsigned> NvmlDeviceQueries::minor_number(NvmlDevice device) const
{
    const auto number = nvml_fill<uint32_t>(minor_, device);
    return number && *number <= max_gpu_minor ? std::optional(*number) : std::nullopt;
}

// The older function counts as used what the driver keeps for itself; nvidia-smi shows what the newer one says. That
// may be there and fail (WSL: unknown error, driver 516.59). A device that shares the host's memory has a total of 0.
void NvmlDeviceQueries::add_memory(NvmlDevice device, NvmlDeviceState& state) const
{
    uint64_t total = 0, used = 0;
    if (const auto newer = nvml_fill(memory_v2_, device, MemoryV2{memory_v2, 0, 0, 0, 0})) {
        total = newer->total;
        used = newer->used;
    } else if (const auto older = nvml_fill<Memory>(memory_, device)) {
        total = older->total;
        used = older->used;
    }
    if (total == 0 || used > total)
        return;
    state.memory_total = total;
    state.memory_used = used;
}

// Else by the profile in its name: "... MIG 1c.3g.40gb" is one of an instance of 3, "... MIG 3g.40gb" all of it.
NvmlDeviceQueries::Slices NvmlDeviceQueries::slices(NvmlDevice mig, std::string_view name) const
{
    const auto told = nvml_fill<Attributes>(attributes_, mig);
    if (told && told->gpu_instance_slices <= most_slices && told->compute_instance_slices <= told->gpu_instance_slices)
        return {told->gpu_instance_slices, told->compute_instance_slices};
    const unsigned all = number_before(name, "g."), part = number_before(name, "c.");
    return {all, part ? std::min(part, all) : all};
}

void NvmlDeviceQueries::add_instances(NvmlDevice device, NvmlDeviceState& state) const
{
    unsigned most = 0;
    if (!most_ || !mig_handle_ || !gpu_instance_ || most_(device, &most) != NVML_OK)
        return;
    state.slices = most = std::min(most, most_slices);
    std::map<uint32_t, NvmlInstance> instances;
    for (unsigned i = 0; i < most; i++) {
        NvmlDevice mig = nullptr;
        unsigned id = 0;
        if (mig_handle_(device, i, &mig) != NVML_OK || gpu_instance_(mig, &id) != NVML_OK || !nvml_has_instance(id))
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
