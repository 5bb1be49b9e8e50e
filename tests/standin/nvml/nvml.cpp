// SPDX-License-Identifier: Apache-2.0
// Stand-in for NVML, with answers from a file: initialization, and process lists.
#include "answers.hpp"

#include <cstdio>
#include <cstring>

int opened;
char handles[max_devices], mig_handles[max_devices][max_instances];

namespace {

unsigned list_calls;

// List element; the elements of all versions are prefixes of this one.
struct Element {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_bytes;
};
static_assert(sizeof(Element) == 32);

int list(const Answers& answers, const Device& device, const char* name, int suffix, unsigned* count, void* infos)
{
    std::vector<Process> found;
    for (const Process& process : device.processes)
        if (process.list == name)
            found.push_back(process);
    if (strcmp(name, "compute") == 0)
        for (unsigned i = 0, more = answers.grow * list_calls++; i < more; i++)
            found.push_back({name, 100000 + i, 4096, none, none});

    const unsigned capacity = *count;
    *count = static_cast<unsigned>(answers.need >= 0 ? answers.need : static_cast<int64_t>(found.size()));
    if (capacity < found.size())
        return insufficient_size;
    if (!infos && capacity > 0)
        return invalid_argument;
    const size_t size = answers.element                         ? answers.element
                        : suffix == 1                           ? 16
                        : suffix == 3 && answers.wrong_stride() ? 32
                                                                : 24;
    for (size_t i = 0; i < found.size(); i++) {
        const Process& process = found[i];
        // The value after the first 24 bytes looks like a pid to readers that assume a stride of 24 bytes.
        const Element element{process.pid, 0, process.bytes, process.gpu_instance, process.compute_instance, 4242};
        memcpy(static_cast<char*>(infos) + i * size, &element, size < sizeof(element) ? size : sizeof(element));
    }
    *count = static_cast<unsigned>(answers.claim >= 0 ? answers.claim : static_cast<int64_t>(found.size()));
    return ok;
}

int list(const char* name, int suffix, void* handle, unsigned* count, void* infos)
{
    if (!count)
        return invalid_argument;
    return of_device(handle, name, [&](const Answers& answers, const Device& device) -> int {
        return suffix > answers.newest ? function_not_found : list(answers, device, name, suffix, count, infos);
    });
}

} // namespace

EXPORT int nvmlInit()
{
    const int result = read_answers().init;
    if (result == ok && opened++ == 0)
        list_calls = 0;
    return result;
}

EXPORT int nvmlShutdown()
{
    return opened > 0 ? opened--, ok : uninitialized;
}

EXPORT int nvmlDeviceGetCount(unsigned* count)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    *count = answers.devices.empty() ? 0 : answers.devices.rbegin()->first + 1;
    return ok;
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void** handle)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    const auto device = answers.devices.find(index);
    if (device == answers.devices.end())
        return invalid_argument;
    if (const auto fails = device->second.fails.find("device"); fails != device->second.fails.end())
        return fails->second;
    *handle = &handles[index];
    return ok;
}

ALIAS(int, nvmlInit_v2, (), nvmlInit)
ALIAS(int, nvmlDeviceGetCount_v2, (unsigned*), nvmlDeviceGetCount)
ALIAS(int, nvmlDeviceGetHandleByIndex_v2, (unsigned, void**), nvmlDeviceGetHandleByIndex)

EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned length)
{
    const Answers answers = read_answers();
    const int written =
        snprintf(version, length, "%d.%02d.%02d", answers.driver[0], answers.driver[1], answers.driver[2]);
    return written < static_cast<int>(length) ? ok : insufficient_size;
}

EXPORT const char* nvmlErrorString(int result)
{
    static const std::map<int, const char*> texts = {{ok, "Success"},
                                                     {not_supported, "Not Supported"},
                                                     {driver_not_loaded, "Driver Not Loaded"},
                                                     {gpu_is_lost, "GPU is lost"},
                                                     {version_mismatch, "Driver/library version mismatch"}};
    const auto found = texts.find(result);
    return found == texts.end() ? "Unknown Error" : found->second;
}

#define LIST(function, suffix, name)                                                                                   \
    EXPORT int function(void* device, unsigned* count, void* infos)                                                    \
    {                                                                                                                  \
        return list(name, suffix, device, count, infos);                                                               \
    }
#define LISTS(function, name) LIST(function, 1, name) LIST(function##_v2, 2, name) LIST(function##_v3, 3, name)

LISTS(nvmlDeviceGetComputeRunningProcesses, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
