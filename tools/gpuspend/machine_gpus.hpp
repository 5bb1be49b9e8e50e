// SPDX-License-Identifier: Apache-2.0
// List of all GPUs of this machine, including unused ones, because they are paid for, too.
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
    std::string id;                       // UUID or, if not known, PCI address or index: "0000:3b:00.0", "gpu 0"
    std::string model;                    // printable; empty if unknown
    std::optional<unsigned> index, minor; // index as in nvidia-smi, minor number of /dev/nvidiaN
    // The fields below are for MIG instances, which are listed like devices.
    std::optional<uint16_t> instance{}; // number of the GPU instance
    std::optional<uint16_t> compute{};  // number of the compute instance, if there are several
    std::string device{};               // id of the whole device
    unsigned slices = 0;                // number of MIG slices of the instance or device; 0: a device without MIG
};

class MachineGpus {
public:
    // Updates the list from NVML; if that is not available, from the driver's files; if these are missing, from the
    // kubelet. Devices are never removed, because a failed device is still paid for.
    void refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet);

    const std::vector<MachineGpu>& all() const { return all_; }
    const MachineGpu* at(const Gpu& gpu) const;           // null: unknown
    const MachineGpu* named(std::string_view name) const; // by UUID, or by index as in NVIDIA_VISIBLE_DEVICES
    bool divided() const;                                 // true if any device is divided by MIG
    // Divides `ns` of each device between its MIG instances in proportion to their slices. The device itself receives
    // the time of slices without an instance, or all of `ns` if it has no MIG. Results are in the order of all().
    std::vector<uint64_t> times(uint64_t ns) const;
    // "nvml", "sysfs" (if all GPUs are AMD's), "driver" or "kubelet"; empty if no GPU is known
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
