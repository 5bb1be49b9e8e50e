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
constexpr uint32_t max_milliwatts = 10'000'000; // more is not plausible for a device

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
// Version field of the struct: its size and version. The documented value, a plain 2, fails with error 13 on driver
// 510.39.01.
constexpr uint32_t memory_v2 = sizeof(MemoryV2) | 2U << 24;

// Beginning of nvmlPciInfo_t, which is the same in all versions.
struct Pci {
    char legacy[16];
    uint32_t domain, bus, device;
};

constexpr unsigned max_slices = 16; // A100, H100 and B200 have 7, A30 has 4

// nvmlDeviceAttributes_t
struct Attributes {
    std::array<uint32_t, 6> others;
    uint32_t gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

// Returns the number before the last occurrence of `mark`.
unsigned number_before(std::string_view name, std::string_view mark)
{
    const size_t end = name.rfind(mark);
    if (end == std::string_view::npos || end == 0)
        return 0;
    const size_t from = name.find_last_not_of("0123456789", end - 1) + 1;
    const unsigned count = leading_number<unsigned>(name.substr(from, end - from)).value_or(0);
    return count <= max_slices ? count : 0;
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
    symbols.find(max_instances_, {"nvmlDeviceGetMaxMigDeviceCount"});
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
    else // utilization has no meaning under MIG, even if a driver reports it
        state.utilization = utilization(device);
    state.power_watts = power_watts(device);
    add_memory(device, state);
    return state;
}

std::string nvml_text(NvmlTextFunction function, NvmlDevice device)
{
    std::array<char, 256> room{}; // larger than requested, in case the function writes too much
    if (!function || function(device, room.data(), text_length) != NVML_OK)
        return {};
    return printable({room.data(), strnlen(room.data(), text_length)});
}

// Formats the PCI address from its numbers, because NVML's text has a domain of 4 digits in older versions and 8 in
// newer ones.
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

// Prefers the newer function, to show the same value as nvidia-smi. The older function includes the memory that the
// driver reserves for itself. In WSL, the newer function exists but fails (unknown error, driver 516.59). The total is
// 0 if the device shares the host's memory.
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

// If NVML does not report the slices, derives them from the MIG profile in the name. "... MIG 1c.3g.40gb" is one slice
// of a GPU instance with three slices, and "... MIG 3g.40gb" is all three.
NvmlDeviceQueries::Slices NvmlDeviceQueries::slices(NvmlDevice mig, std::string_view name) const
{
    const auto attributes = nvml_fill<Attributes>(attributes_, mig);
    if (attributes && attributes->gpu_instance_slices <= max_slices &&
        attributes->compute_instance_slices <= attributes->gpu_instance_slices)
        return {attributes->gpu_instance_slices, attributes->compute_instance_slices};
    const unsigned all = number_before(name, "g."), part = number_before(name, "c.");
    return {all, part ? std::min(part, all) : all};
}

void NvmlDeviceQueries::add_instances(NvmlDevice device, NvmlDeviceState& state) const
{
    unsigned count = 0;
    if (!max_instances_ || !mig_handle_ || !gpu_instance_ || max_instances_(device, &count) != NVML_OK)
        return;
    state.slices = count = std::min(count, max_slices);
    std::map<uint32_t, NvmlInstance> instances;
    for (unsigned i = 0; i < count; i++) {
        NvmlDevice mig = nullptr;
        unsigned id = 0;
        if (mig_handle_(device, i, &mig) != NVML_OK || gpu_instance_(mig, &id) != NVML_OK || !nvml_has_instance(id))
            continue; // the indices of instances may have gaps
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
