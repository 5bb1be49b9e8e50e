// SPDX-License-Identifier: Apache-2.0
// Queries about whole devices, and utilization samples of their processes.
#include "answers.hpp"

#include <cstring>

namespace {

struct PciInfo {
    char legacy[16];
    uint32_t domain, bus, device, ids, subsystem;
    char id[32]; // in v3 only
};
static_assert(sizeof(PciInfo) == 68);

struct MemoryInfo {
    uint64_t total, free, used;
};

struct MemoryInfoV2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct ProcessSample {
    uint32_t pid;
    uint64_t time_us;
    uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessSample) == 32);

int pci_info(void* handle, PciInfo* info, size_t size)
{
    return of_device(handle, "pci", [&](const Answers&, const Device& device) -> int {
        if (!device.pci)
            return not_supported;
        PciInfo all{"no text", device.pci->domain, device.pci->bus, device.pci->device, 0x233010de, 0, "no text"};
        memcpy(info, &all, size);
        return ok;
    });
}

// Returns a number, or not_supported.
int number(void* handle, const char* query, std::optional<uint32_t> Device::*figure, unsigned* to)
{
    return of_device(handle, query, [&](const Answers&, const Device& device) -> int {
        if (!(device.*figure))
            return not_supported;
        *to = *(device.*figure);
        return ok;
    });
}

// Stores a text in `to`. The text is not null-terminated if it fills the buffer.
int text(void* handle, const char* query, std::optional<std::string> Device::*figure, char* to, unsigned length)
{
    return of_device(handle, query, [&](const Answers&, const Device& device) -> int {
        if (!(device.*figure))
            return not_supported;
        strncpy(to, (device.*figure)->c_str(), length);
        return ok;
    });
}

} // namespace

EXPORT int nvmlDeviceGetName(void* handle, char* name, unsigned length)
{
    const Answers answers = read_answers();
    if (const Mig* const mig = mig_of(answers, handle)) {
        const std::string profile = mig->slices ? std::to_string(mig->slices) + "g.10gb" : "3g.40gb";
        strncpy(name, ("NVIDIA MIG " + profile).c_str(), length);
        return ok;
    }
    return text(handle, "name", &Device::name, name, length);
}

EXPORT int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned length)
{
    const Answers answers = read_answers();
    if (const Mig* const mig = mig_of(answers, handle)) {
        strncpy(uuid, mig->uuid.c_str(), length);
        return ok;
    }
    return text(handle, "uuid", &Device::uuid, uuid, length);
}

EXPORT int nvmlDeviceGetPciInfo(void* handle, PciInfo* info)
{
    return pci_info(handle, info, 36);
}
ALIAS(int, nvmlDeviceGetPciInfo_v2, (void*, PciInfo*), nvmlDeviceGetPciInfo)
EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info)
{
    return pci_info(handle, info, sizeof(*info));
}

EXPORT int nvmlDeviceGetUtilizationRates(void* handle, unsigned* rates)
{
    rates[1] = 1; // utilization of memory
    return number(handle, "utilization", &Device::utilization, rates);
}

EXPORT int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts)
{
    return number(handle, "power", &Device::power, milliwatts);
}

EXPORT int nvmlDeviceGetMinorNumber(void* handle, unsigned* minor)
{
    return number(handle, "minor", &Device::minor, minor);
}

EXPORT int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending)
{
    *pending = 7;
    return number(handle, "mig", &Device::mig, current);
}

EXPORT int nvmlDeviceGetMemoryInfo(void* handle, MemoryInfo* info)
{
    return of_device(handle, "memory", [&](const Answers&, const Device& device) -> int {
        if (!device.memory)
            return not_supported;
        const uint64_t used = device.memory->used + device.memory->reserved;
        *info = {device.memory->total, device.memory->total - used, used};
        return ok;
    });
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryInfoV2* info)
{
    return of_device(handle, "memory_v2", [&](const Answers&, const Device& device) -> int {
        if (info->version != (sizeof(*info) | 2 << 24))
            return function_not_found;
        if (!device.memory)
            return not_supported;
        const auto& [total, used, reserved] = *device.memory;
        *info = {info->version, total, reserved, total - used - reserved, used};
        return ok;
    });
}

EXPORT int nvmlDeviceGetProcessUtilization(void* handle, ProcessSample* samples, unsigned* count,
                                           unsigned long long after_us)
{
    return of_device(handle, "samples", [&](const Answers& answers, const Device& device) -> int {
        std::vector<ProcessSample> found;
        for (const Sample& sample : device.samples)
            if (answers.stale || sample.time_us > after_us)
                found.push_back({sample.pid, sample.time_us, sample.sm, 1, 2, 3});
        if (found.empty())
            return not_found;
        const unsigned capacity = *count;
        *count = static_cast<unsigned>(answers.need >= 0 ? answers.need : static_cast<int64_t>(found.size()));
        if (!samples || capacity < found.size())
            return insufficient_size;
        memcpy(samples, found.data(), found.size() * sizeof(found[0]));
        *count = static_cast<unsigned>(answers.claim >= 0 ? answers.claim : static_cast<int64_t>(found.size()));
        return ok;
    });
}
