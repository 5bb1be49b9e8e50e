// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_device.hpp"

#include "base/text.hpp"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr unsigned text_length = 96;            // NVML_DEVICE_NAME_V2_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr uint32_t max_minor = 247;             // of the driver's device files, those above are no GPUs
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

// What a function fills, with room behind it: what writes more than it should stays inside.
template<class T>
struct Answer {
    T value{};
    std::array<unsigned char, 256> more{};
};

template<class T>
std::optional<T> fill(int (*function)(NvmlDevice, void*), NvmlDevice device, const T& given = {})
{
    Answer<T> answer{given};
    if (!function || function(device, &answer) != NVML_OK)
        return std::nullopt;
    return answer.value;
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
    if (!state.mig.value_or(false)) // under MIG there is no such figure, whatever a driver answers
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
    const auto at = fill<Pci>(pci_, device);
    if (!at || at->bus > 0xff || at->device > 0x1f)
        return {};
    return fmt::format("{:04x}:{:02x}:{:02x}.0", at->domain, at->bus, at->device);
}

std::optional<unsigned> NvmlDeviceQueries::utilization(NvmlDevice device) const
{
    const auto rates = fill<Utilization>(utilization_, device);
    return rates && rates->gpu <= 100 ? std::optional(rates->gpu) : std::nullopt;
}

std::optional<double> NvmlDeviceQueries::power_watts(NvmlDevice device) const
{
    const auto milliwatts = fill<uint32_t>(power_, device);
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
    const auto number = fill<uint32_t>(minor_, device);
    return number && *number <= max_minor ? std::optional(*number) : std::nullopt;
}

// The older function counts as used what the driver keeps for itself; nvidia-smi shows what the newer one says. That
// may be there and fail (WSL: unknown error, driver 516.59). A device that shares the host's memory has a total of 0.
void NvmlDeviceQueries::add_memory(NvmlDevice device, NvmlDeviceState& state) const
{
    uint64_t total = 0, used = 0;
    if (const auto newer = fill(memory_v2_, device, MemoryV2{memory_v2, 0, 0, 0, 0})) {
        total = newer->total;
        used = newer->used;
    } else if (const auto older = fill<Memory>(memory_, device)) {
        total = older->total;
        used = older->used;
    }
    if (total == 0 || used > total)
        return;
    state.memory_total = total;
    state.memory_used = used;
}

} // namespace gpusnoop
