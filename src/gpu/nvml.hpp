// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML): the state of devices, and the memory and time that processes use on them. It is
// loaded at run time if it exists; nothing is linked. AMD GPUs have the same figures from the kernel (amd.hpp).
#pragma once

#include "base/machine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpusnoop {

// The shared part of NVML's interface, declared here because its header is not available at build time.

// nvmlReturn_t, and one code of ours.
enum NvmlCode : int {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_UNREADABLE = -1, // ours: an answer that cannot be parsed
};

using NvmlDevice = struct nvmlDevice*;

constexpr int nvml_max_tries = 6;           // for lists that grow while they are read
constexpr unsigned nvml_max_room = 65536;   // elements
constexpr uint32_t nvml_max_pid = 1U << 22; // the kernel's PID_MAX_LIMIT

constexpr bool nvml_has_pid(uint32_t pid)
{
    return pid > 0 && pid <= nvml_max_pid;
}

// The capacity to retry with, if `capacity` elements were too few and `needed` were reported. A list that is still too
// long on a retry grows while it is read, so the next capacity is larger than reported.
constexpr unsigned nvml_more_room(unsigned capacity, unsigned needed)
{
    const uint64_t wanted = capacity ? uint64_t{std::max(needed, capacity)} * 3 / 2 + 8 : std::max(needed, 1u);
    return static_cast<unsigned>(std::min<uint64_t>(wanted, nvml_max_room));
}

// NVML's functions by name. Older libraries lack some of them, or have other names for them.
class NvmlSymbols {
public:
    explicit NvmlSymbols(void* library) : library_(library) {} // must stay open while found functions are called

    // Finds the first name that exists. Returns false and leaves `function` as it is if there is none.
    template<class Function>
    bool find(Function& function, std::initializer_list<const char*> names) const
    {
        for (const char* const name : names)
            if (!function)
                function = reinterpret_cast<Function>(dlsym(library_, name));
        return function != nullptr;
    }

private:
    void* library_;
};

struct NvmlProcess {
    // In our pid namespace since driver 535.113.01, in the host's before that. Both are the same in the host's.
    uint32_t pid;
    unsigned device;               // nvidia-smi's index (PCI order); CUDA's may differ
    std::optional<uint64_t> bytes; // of device memory; nullopt: not reported
    // Of MIG. nullopt: no MIG, not reported, or the process is on several.
    std::optional<uint32_t> gpu_instance, compute_instance;
};

// Use of the hardware since the last query, in percent; nullopt: not reported. Covers all processes of a device or a
// MIG instance: there are no such figures per process.
struct NvmlEfficiency {
    std::optional<double> sm_active;     // time with a resident warp, averaged over all SMs
    std::optional<double> sm_occupancy;  // resident warps, of the maximum that fits
    std::optional<double> tensor_active; // cycles in which the tensor cores worked
    std::optional<double> dram_active;   // cycles in which memory was read or written
};

// A compute instance of MIG, which programs see as a device.
struct NvmlComputeInstance {
    uint32_t number = 0;
    std::string uuid;    // printable
    unsigned slices = 0; // compute slices; 0: unknown
    bool operator==(const NvmlComputeInstance&) const = default;
};

// A GPU instance of MIG: a part of a device with its own SMs and memory.
struct NvmlInstance {
    uint32_t gpu_instance = 0;
    std::vector<NvmlComputeInstance> parts; // usually one that has all of it
    std::string name;                       // printable: "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    unsigned slices = 0;                    // compute slices; 0: unknown
    NvmlEfficiency efficiency;

    bool divided() const { return parts.size() > 1; }
};

enum class GpuVendor : uint8_t { nvidia, amd };

// Fields that the driver does not report are empty.
struct NvmlDeviceState {
    unsigned index = 0;            // nvidia-smi's; AMD devices follow in PCI order
    std::optional<unsigned> minor; // N of /dev/nvidiaN, which may differ from the index
    std::string name;              // printable
    std::string pci;               // "0000:3b:00.0"
    std::string uuid;              // printable: "GPU-..."
    // Percent of the driver's last sampling period (1/6 to 1 s) in which any kernel ran. Unknown under MIG.
    std::optional<unsigned> utilization;
    // Bytes. memory_used excludes the driver's own reserve with drivers from 510 on. Unknown if the device shares the
    // host's memory.
    std::optional<uint64_t> memory_used, memory_total;
    std::optional<double> power_watts;
    std::optional<bool> mig;   // nullopt: the device does not have MIG
    NvmlEfficiency efficiency; // from GPM: Hopper and newer; with MIG, see the instances
    unsigned slices = 0;       // into which MIG divides the device; 0: no MIG
    std::vector<NvmlInstance> instances;
    GpuVendor vendor = GpuVendor::nvidia;
};

// Use of a device by a process. The driver does not sample idle processes.
struct NvmlUse {
    uint32_t pid;
    unsigned device;
    std::optional<double> sm_percent; // of the time since the last call in which its work ran; nullopt for ROCm
    // For ROCm on AMD GPUs: the compute units that have work of the process at the moment; and the time in which copy
    // engines worked, measured in steps of some seconds.
    std::optional<double> cu_percent{}, sdma_percent{};
};

struct NvmlFailure {
    unsigned device;
    std::string why; // the end of a message: "GPU is lost (error 15)"
};

// Search paths of the library. Only tests change the defaults.
struct NvmlPlaces {
    std::string library = "libnvidia-ml.so.1"; // for dlopen(): a name that the loader searches for, or a path
    // Searched next: WSL, a driver in a container (GPU operator), distributions that the loader's cache does not cover.
    // Only files that only root can write are used.
    std::vector<std::string> folders = {"/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/usr/lib64",
                                        "/usr/lib/wsl/lib",
                                        "/run/nvidia/driver/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/run/nvidia/driver/usr/lib64",
                                        "/usr/local/nvidia/lib64",
                                        "/run/opengl-driver/lib"};
    std::string root{};    // prefix of /sys and /proc for AMD devices
    bool is_named = false; // the user chose the library: if it fails, AMD devices do not replace it
};

// Interface to the devices of one vendor. While NVML is open, the driver keeps queried devices awake. Every call makes
// ioctls in this process.
class Nvml {
public:
    virtual ~Nvml() = default;

    // Returns nullptr if the library is missing or does not start; `why` is then a message for the user.
    static std::unique_ptr<Nvml> open(std::string& why, const NvmlPlaces& places = {});

    virtual unsigned devices() const = 0; // the number of devices when it was opened

    // Processes with a compute or graphics context, and clients of MPS; each (pid, device) once, sorted by device and
    // pid. Blocks as long as the driver does: milliseconds, or longer if a device is failing.
    virtual std::vector<NvmlProcess> processes() = 0;

    // The devices for which the last processes() was incomplete.
    virtual const std::vector<NvmlFailure>& failures() const = 0;

    // One state per device, in order; for a failing device only the index. Efficiency covers the time since the last
    // call; the first call returns none.
    virtual std::vector<NvmlDeviceState> states() = 0;

    // Each (pid, device) once, sorted by device and pid. Covers the time since the last call; the first call returns
    // nothing. Excludes devices that the driver does not sample by process: those with MIG, and some GPUs.
    virtual std::vector<NvmlUse> process_use() = 0;
};

// An element of NVML's process lists. Each layout of nvmlProcessInfo_t extends the shorter one: 16 bytes, 24 with the
// instances, 32 with the protected memory, which is not used here.
struct NvmlElement {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;                          // all ones: not available
    uint32_t gpu_instance, compute_instance; // nvml_no_instance: no MIG
};
static_assert(sizeof(NvmlElement) == 24);
constexpr uint32_t nvml_no_instance = ~0u;

constexpr bool nvml_has_instance(uint32_t id)
{
    return id < 256;
}

constexpr size_t nvml_small_element = 16, nvml_large_element = 32;

using NvmlListFunction = int (*)(NvmlDevice, unsigned* count, void* elements);

struct NvmlList {
    NvmlListFunction function;
    size_t element; // bytes, as documented
};

// The list that the function returns for the device. Counts and elements are validated. code: NVML_OK, or the reason
// why there are no elements.
std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code);

} // namespace gpusnoop
