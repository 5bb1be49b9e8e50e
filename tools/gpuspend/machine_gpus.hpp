// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine. Their time is paid for whether they are used or not.
#pragma once

#include "gpu/nvml_figures.hpp"
#include "rows/process_gpus.hpp"
#include "tools/gpuspend/kubelet.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct MachineGpu {
    std::string id;                       // UUID; if not known, its PCI address or index: "0000:3b:00.0", "gpu 0"
    std::string model;                    // printable; empty: unknown
    std::optional<unsigned> index, minor; // index as in nvidia-smi, minor number of /dev/nvidiaN
    // For a MIG instance, which is held like a device, and has the model of its device:
    std::optional<uint16_t> instance{}; // number of the GPU instance
    std::optional<uint16_t> compute{};  // number of the compute instance, if there are several
    std::string device{};               // id of its device
    unsigned slices = 0;                // MIG slices of the instance, or of the device; 0: a device without MIG
};

class MachineGpus {
public:
    // Updates the list from the first available source of NVML, the driver's files, and the kubelet. Devices are never
    // removed, because a failed one is still paid for.
    void refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet);

    const std::vector<MachineGpu>& all() const { return all_; }
    const MachineGpu* at(const Gpu& gpu) const;           // null: unknown
    const MachineGpu* named(std::string_view name) const; // by UUID, or by index as in NVIDIA_VISIBLE_DEVICES
    bool divided() const;                                 // true if any device is divided by MIG
    // Divides `ns` of each device between the device and its MIG instances by their slices; in the order of all(). A
    // device without MIG gets all of it, a divided one the part of the slices that belong to no instance.
    std::vector<uint64_t> times(uint64_t ns) const;
    // "nvml", "sysfs" (all GPUs are AMD's), "driver" or "kubelet"; empty: no GPU is known
    std::string_view source() const { return source_; }

private:
    void learn(const MachineGpu& gpu);
    void learn_instances(const NvmlDeviceState& state);
    static std::vector<MachineGpu> parts_of(const MachineGpu& whole, const NvmlInstance& instance);

    std::vector<MachineGpu> all_;
    std::string_view source_;
};

// Parses /proc/driver/nvidia/gpus/BDF/information: UUID, model and minor number.
MachineGpu parse_gpu_information(std::string_view text, const std::string& place);

} // namespace gpusnoop
