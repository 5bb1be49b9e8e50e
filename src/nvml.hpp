// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's management library (NVML) says each process holds of each device, to be shown beside our own figures.
// It is opened at run time where there is one; nothing is linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpusnoop {

struct NvmlProcess {
    // Of the reader's pid namespace from driver 535.113.01 on, of the host's before: the same in the host's namespace.
    uint32_t pid;
    unsigned device;               // as nvidia-smi numbers them (PCI order); CUDA may number them differently
    std::optional<uint64_t> bytes; // of device memory; nullopt: the driver does not tell
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
    std::vector<std::string> folders = {"/usr/lib/x86_64-linux-gnu",
                                        "/usr/lib64",
                                        "/usr/lib/wsl/lib",
                                        "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
                                        "/run/nvidia/driver/usr/lib64",
                                        "/usr/local/nvidia/lib64",
                                        "/run/opengl-driver/lib"};
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
};

} // namespace gpusnoop
