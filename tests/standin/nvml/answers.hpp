// SPDX-License-Identifier: Apache-2.0
// The stand-in NVML's answers, which it reads from a file at each call. ../README.md describes the file's lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
// Exports a function by another name, too.
#define ALIAS(result, name, parameters, of) EXPORT result name parameters __attribute__((alias(#of)));

// nvmlReturn_t
enum Result {
    ok = 0,
    uninitialized = 1,
    invalid_argument = 2,
    not_supported = 3,
    not_found = 6,
    insufficient_size = 7,
    driver_not_loaded = 9,
    function_not_found = 13,
    gpu_is_lost = 15,
    version_mismatch = 18,
    unknown = 999
};

constexpr uint32_t none = ~0u;
constexpr int max_devices = 64, max_instances = 8; // instances per device

struct Process {
    std::string list;
    uint32_t pid;
    uint64_t bytes; // UINT64_MAX: unknown
    uint32_t gpu_instance, compute_instance;
};

struct Sample {
    uint32_t pid;
    uint64_t time_us;
    uint32_t sm;
};

struct Memory {
    uint64_t total, used, reserved;
};

struct Pci {
    uint32_t domain, bus, device;
};

// A MIG device: a compute instance in a GPU instance.
struct Mig {
    uint32_t gpu_instance, compute_instance, slices; // slices 0: the size is not given
    std::string uuid;
};

// Queries for values that were not given return "not supported".
struct Device {
    std::map<std::string, int> fails; // result codes of failing queries, by query name or "device"
    std::vector<Process> processes;
    std::vector<Sample> samples;
    std::map<uint32_t, std::map<uint32_t, double>> gpm; // values by GPU instance (`none`: whole device) and metric
    std::vector<Mig> migs;
    std::optional<std::string> name, uuid;
    std::optional<Pci> pci;
    std::optional<Memory> memory;
    std::optional<uint32_t> utilization, power, mig, minor, slices;
};

// The contents of the file.
struct Answers {
    int driver[3] = {550, 54, 15};
    int newest = 3; // newest version suffix (_v3) of the process lists
    int init = ok;
    int64_t element = 0, grow = 0, claim = -1, need = -1;
    bool stale = false;
    bool hang = false;
    std::map<unsigned, Device> devices;
    bool good = true;

    bool wrong_stride() const // true for drivers whose _v3 lists have larger elements
    {
        return driver[0] == 535 && driver[1] >= 43 && driver[1] <= 86;
    }
};

Answers read_answers();

// State of this process: nvmlInit calls without nvmlShutdown, and device handles.
extern int opened;
extern char handles[max_devices], mig_handles[max_devices][max_instances];

// The MIG device of a handle; nullptr if the handle is invalid or belongs to a whole device.
const Mig* mig_of(const Answers& answers, const void* handle);

// Answers a query about a device by calling answer(answers, device), unless the file makes this query fail.
template<class Answer>
int of_device(void* handle, const char* query, Answer&& answer)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    const char* const place = static_cast<char*>(handle);
    if (place < handles || place >= handles + max_devices)
        return invalid_argument;
    const auto device = answers.devices.find(static_cast<unsigned>(place - handles));
    if (device == answers.devices.end() || !answers.good)
        return gpu_is_lost;
    if (const auto fails = device->second.fails.find(query); fails != device->second.fails.end())
        return fails->second;
    return answer(answers, device->second);
}
