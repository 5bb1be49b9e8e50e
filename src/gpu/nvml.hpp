// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML), which reports the state of devices and how much memory and time processes use on
// them. The library is loaded at run time, if it exists. amd.hpp reads the same values for AMD GPUs from the kernel.
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

// NVML declarations that several files need. They are repeated here because NVML's header is not available at build
// time.

// The values of nvmlReturn_t that we use, and one value of our own.
enum NvmlCode : int {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_UNREADABLE = -1, // not in nvmlReturn_t; the result cannot be parsed
};

using NvmlDevice = struct nvmlDevice*;

constexpr int nvml_max_tries = 6;           // maximum attempts to read a list, which may grow between attempts
constexpr unsigned nvml_max_room = 65536;   // maximum capacity of a buffer, in elements
constexpr uint32_t nvml_max_pid = 1U << 22; // the kernel's PID_MAX_LIMIT

constexpr bool nvml_has_pid(uint32_t pid)
{
    return pid > 0 && pid <= nvml_max_pid;
}

// Returns the buffer capacity for the next try, after NVML has reported that `capacity` was too small and that it needs
// `needed` elements. After the first try (capacity 0), the result is `needed`. After later tries, the result exceeds
// `needed`, so that the buffer also has room for elements that are added before the next try.
constexpr unsigned nvml_more_room(unsigned capacity, unsigned needed)
{
    const uint64_t wanted = capacity ? uint64_t{std::max(needed, capacity)} * 3 / 2 + 8 : std::max(needed, 1u);
    return static_cast<unsigned>(std::min<uint64_t>(wanted, nvml_max_room));
}

// Lookup of NVML's functions by name. Older libraries lack some functions, or have other names for them.
class NvmlSymbols {
public:
    explicit NvmlSymbols(void* library) : library_(library) {} // keep the library open while calling its functions

    // Sets `function` to the first of the named functions that the library has. If it has none, returns false and
    // leaves `function` unchanged.
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
    // The pid in our pid namespace; before driver 535.113.01, the pid in the host's namespace.
    uint32_t pid;
    unsigned device;               // nvidia-smi's index (PCI order), which may differ from CUDA's
    std::optional<uint64_t> bytes; // device memory; nullopt: not reported
    // Ids of the MIG instances. nullopt: no MIG, not reported, or the process uses several instances.
    std::optional<uint32_t> gpu_instance, compute_instance;
};

// Utilization of hardware units since the last query, in percent; nullopt: not reported. Each value covers all
// processes on a device or MIG instance, because NVML does not report it per process.
struct NvmlEfficiency {
    std::optional<double> sm_active;     // percentage of time with a resident warp, averaged over all SMs
    std::optional<double> sm_occupancy;  // resident warps, in percent of the maximum number
    std::optional<double> tensor_active; // percentage of cycles in which the tensor cores worked
    std::optional<double> dram_active;   // percentage of cycles in which memory was read or written
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
    std::vector<NvmlComputeInstance> parts; // compute instances; usually one, which covers the whole GPU instance
    std::string name;                       // printable: "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    unsigned slices = 0;                    // compute slices; 0: unknown
    NvmlEfficiency efficiency;

    bool divided() const { return parts.size() > 1; }
};

enum class GpuVendor : uint8_t { nvidia, amd };

// Fields that the driver does not report are empty.
struct NvmlDeviceState {
    unsigned index = 0;            // nvidia-smi's index; AMD devices follow in PCI order
    std::optional<unsigned> minor; // N of /dev/nvidiaN, which may differ from the index
    std::string name;              // printable
    std::string pci;               // "0000:3b:00.0"
    std::string uuid;              // printable: "GPU-..."
    // Percent of the driver's last sampling period (1/6 to 1 s) during which at least one kernel ran. Unknown under
    // MIG.
    std::optional<unsigned> utilization;
    // In bytes; unknown if the device shares the host's memory. From driver 510 on, memory_used excludes the memory
    // that the driver reserves for itself.
    std::optional<uint64_t> memory_used, memory_total;
    std::optional<double> power_watts;
    std::optional<bool> mig;   // nullopt: the device does not support MIG
    NvmlEfficiency efficiency; // from GPM (Hopper and newer); under MIG, reported only in `instances`
    unsigned slices = 0;       // number of slices into which MIG divides the device; 0: no MIG
    std::vector<NvmlInstance> instances;
    GpuVendor vendor = GpuVendor::nvidia;
};

// Use of a device by a process. Idle processes have no entry, because the driver does not sample them.
struct NvmlUse {
    uint32_t pid;
    unsigned device;
    // Percent of the time since the last query during which the process's work ran; nullopt for ROCm.
    std::optional<double> sm_percent;
    // Only for ROCm on AMD GPUs. cu_percent: percent of compute units that are running the process's work now.
    // sdma_percent: percent of time during which copy engines worked, measured every few seconds.
    std::optional<double> cu_percent{}, sdma_percent{};
};

struct NvmlFailure {
    unsigned device;
    std::string why; // for the end of a message: "GPU is lost (error 15)"
};

// Search paths for the library. --nvml and tests change the defaults.
struct NvmlPlaces {
    std::string library = "libnvidia-ml.so.1"; // argument of dlopen(): a name that the loader searches for, or a path
    // Folders to search if the loader does not find the library: for WSL, for a driver in a container (GPU operator),
    // and for distributions whose loader does not search the driver's folder. A file is used only if no user but root
    // can write it.
    std::vector<std::string> folders = {"/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/usr/lib64",
                                        "/usr/lib/wsl/lib",
                                        "/run/nvidia/driver/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/run/nvidia/driver/usr/lib64",
                                        "/usr/local/nvidia/lib64",
                                        "/run/opengl-driver/lib"};
    std::string root{};    // prefix of /sys and /proc for AMD devices
    bool is_named = false; // true if the user named the library; if it fails, AMD devices are not used either
};

// Interface to the devices of one vendor. While NVML is open, the driver keeps queried devices awake. Every call makes
// ioctls from this process.
class Nvml {
public:
    virtual ~Nvml() = default;

    // If the library is missing or cannot be initialized, returns nullptr and stores a message for the user in `why`.
    static std::unique_ptr<Nvml> open(std::string& why, const NvmlPlaces& places = {});

    virtual unsigned devices() const = 0; // number of devices, as of open()

    // Returns the processes with a compute or graphics context, and the clients of MPS. Sorted by device and pid; each
    // pair occurs once. The driver may block the call for milliseconds, or longer if a device is failing.
    virtual std::vector<NvmlProcess> processes() = 0;

    // Returns the devices for which the last processes() was incomplete.
    virtual const std::vector<NvmlFailure>& failures() const = 0;

    // Returns one state per device, sorted by index. For a failing device, only the index is set. The values in
    // `efficiency` cover the time since the last call, so the first call returns none.
    virtual std::vector<NvmlDeviceState> states() = 0;

    // Returns the use since the last call; the first call returns nothing. Sorted by device and pid; each pair occurs
    // once. Devices that the driver does not sample per process are missing: MIG devices, and some GPUs.
    virtual std::vector<NvmlUse> process_use() = 0;
};

// An element of NVML's process lists. nvmlProcessInfo_t has 16 bytes in its shortest layout, 24 if it includes the
// instances, and 32 if it also includes the protected memory, which we do not use. Each layout extends the shorter one.
struct NvmlElement {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;                          // all bits set: not available
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
    size_t element; // size of an element according to NVML's documentation, in bytes
};

// Calls the function for the device and returns the list, after validating count and elements. Returns an empty list on
// error. Sets `code` to NVML_OK or to the error.
std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code);

} // namespace gpusnoop
