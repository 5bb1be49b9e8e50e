// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's management library (NVML) says of the devices, and of what each process holds and uses of them, to be
// shown beside our own figures. It is opened at run time where there is one; nothing is linked. AMD's GPUs have the
// same figures from the kernel (amd.hpp).
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

// Of NVML's interface, what all that ask it need; there is no header of it to build with.

// nvmlReturn_t, and one of ours.
enum NvmlCode : int {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_UNREADABLE = -1, // an answer that cannot be read
};

using NvmlDevice = struct nvmlDevice*;

constexpr int nvml_max_tries = 6;           // for what grows while it is read
constexpr unsigned nvml_max_room = 65536;   // elements
constexpr uint32_t nvml_max_pid = 1U << 22; // the kernel's PID_MAX_LIMIT

constexpr bool nvml_has_pid(uint32_t pid)
{
    return pid > 0 && pid <= nvml_max_pid;
}

// The room to ask with when `had` elements were too few and it said that there are `said`. Refused with room for what
// it had said, it grows while we ask: then more than it says.
constexpr unsigned nvml_more_room(unsigned had, unsigned said)
{
    const uint64_t wanted = had ? uint64_t{std::max(said, had)} * 3 / 2 + 8 : std::max(said, 1u);
    return static_cast<unsigned>(std::min<uint64_t>(wanted, nvml_max_room));
}

// NVML's functions by name: older libraries lack some, or have them by another name.
class NvmlSymbols {
public:
    explicit NvmlSymbols(void* library) : library_(library) {} // stays open as long as what was found is called

    // The first of the names that is there. False, and the function is as it was: there is none.
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
    // Of the reader's pid namespace from driver 535.113.01 on, of the host's before: the same in the host's namespace.
    uint32_t pid;
    unsigned device;               // as nvidia-smi numbers them (PCI order); CUDA may number them differently
    std::optional<uint64_t> bytes; // of device memory; nullopt: the driver does not tell
    // Of MIG; nullopt: there is none, the driver does not tell, or the process is on several.
    std::optional<uint32_t> gpu_instance, compute_instance;
};

// How much of the hardware was at work since it was asked before, percent; what nobody tells is empty. Of a device or
// of a MIG instance, never of a process: whoever else was on it is in it.
struct NvmlEfficiency {
    std::optional<double> sm_active;     // SMs that had a warp, of all SMs and of the time
    std::optional<double> sm_occupancy;  // warps that were there, of those that SMs have room for
    std::optional<double> tensor_active; // cycles in which the tensor cores worked
    std::optional<double> dram_active;   // cycles in which memory was read or written
};

// A GPU instance of MIG: a part of a device with SMs and memory of its own.
// What programs see as a device.
struct NvmlComputeInstance {
    uint32_t number = 0;
    std::string uuid;    // printable
    unsigned slices = 0; // of the device's compute slices; 0: not told
    bool operator==(const NvmlComputeInstance&) const = default;
};

struct NvmlInstance {
    uint32_t gpu_instance = 0;
    std::vector<NvmlComputeInstance> parts; // mostly one, which is all of it
    std::string name;                       // printable: "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    unsigned slices = 0;                    // of the device's compute slices; 0: not told
    NvmlEfficiency efficiency;

    bool divided() const { return parts.size() > 1; }
};

enum class GpuVendor : uint8_t { nvidia, amd };

// What the driver does not tell is empty.
struct NvmlDeviceState {
    unsigned index = 0;            // as nvidia-smi numbers them; AMD's follow, in PCI order
    std::optional<unsigned> minor; // N of /dev/nvidiaN, which need not be the index
    std::string name;              // printable
    std::string pci;               // "0000:3b:00.0"
    std::string uuid;              // printable: "GPU-..."
    // Percent of the driver's last sampling period (1/6 to 1 s) in which a kernel ran, at all. Unknown under MIG.
    std::optional<unsigned> utilization;
    // Bytes; used is without what the driver keeps for itself where it says so (510 and newer). Unknown where the
    // device shares the host's memory.
    std::optional<uint64_t> memory_used, memory_total;
    std::optional<double> power_watts;
    std::optional<bool> mig;             // on or off; unknown of those that do not have it
    NvmlEfficiency efficiency;           // by GPM: Hopper and newer; with MIG its instances have theirs
    unsigned slices = 0;                 // that MIG can divide it in; 0: it is not divided
    std::vector<NvmlInstance> instances; // that it is divided in
    GpuVendor vendor = GpuVendor::nvidia;
};

// A process that the driver took a sample of. It takes none of those that are idle.
struct NvmlUse {
    uint32_t pid;
    unsigned device;
    std::optional<double> sm_percent; // of the time since the last call, in which its work ran; not told of ROCm's
    // Of AMD's GPUs with ROCm: compute units that hold its work at this moment, of all; and of the time since the one
    // before, in steps of some seconds, that in which an engine copied.
    std::optional<double> cu_percent{}, sdma_percent{};
};

struct NvmlFailure {
    unsigned device;
    std::string why; // a sentence's end: "GPU is lost (error 15)"
};

// Where the library is looked for; the defaults are for all but tests.
struct NvmlPlaces {
    std::string library = "libnvidia-ml.so.1"; // what dlopen() is asked for: searched for by the loader, or a path
    // Then here: WSL, a driver in a container (GPU operator), distributions that the loader's cache does not cover.
    // Only files that root alone can write.
    std::vector<std::string> folders = {"/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/usr/lib64",
                                        "/usr/lib/wsl/lib",
                                        "/run/nvidia/driver/usr/lib/" GPUSNOOP_LIBRARIES,
                                        "/run/nvidia/driver/usr/lib64",
                                        "/usr/local/nvidia/lib64",
                                        "/run/opengl-driver/lib"};
    std::string root{};    // in whose sys and proc AMD's are looked for; empty: "/"
    bool is_named = false; // by the user: where it is none, AMD's are no replacement
};

// While it is open the driver keeps the devices awake that it has asked. Every call is an ioctl of this process.
class Nvml {
public:
    virtual ~Nvml() = default;

    // nullptr where the library is missing or does not start; `why` then is a sentence for the user.
    static std::unique_ptr<Nvml> open(std::string& why, const NvmlPlaces& places = {});

    virtual unsigned devices() const = 0; // when it was opened

    // Those with a compute or graphics context or that are clients of MPS, each (pid, device) once, in the order of
    // devices and pids. Blocks as long as the driver does: milliseconds, more where a device is failing.
    virtual std::vector<NvmlProcess> processes() = 0;

    // The devices of which the last processes() does not know all.
    virtual const std::vector<NvmlFailure>& failures() const = 0;

    // One of each device, in their order; of one that fails only the index. Efficiency is of the time since the last
    // call: the first one only begins.
    virtual std::vector<NvmlDeviceState> states() = 0;

    // Each (pid, device) once, in the order of devices and pids. The first call only begins; nothing is of the devices
    // that the driver does not sample by process: those with MIG, and some GPUs.
    virtual std::vector<NvmlUse> process_use() = 0;
};

// A list of processes as NVML's functions fill it, whatever the layout of its elements is.

// The layouts of nvmlProcessInfo_t are each other's beginnings: 16 bytes, 24 with the instances, 32 with the protected
// memory, which we do not need.
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

// What the function says of the device; nothing of it, nor the counts, is believed unseen. `code`: NVML_OK, or why
// there are no elements.
std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code);

} // namespace gpusnoop
