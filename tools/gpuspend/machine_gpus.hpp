// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, whose time is paid for whether anybody uses them or not.
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
    std::string id;                       // its UUID; where nobody tells it, its place: "0000:3b:00.0", "gpu 0"
    std::string model;                    // printable; empty unknown
    std::optional<unsigned> index, minor; // nvidia-smi's, and that of /dev/nvidiaN
    // Of a GPU instance of MIG, which is somebody's own, as a device is; its model is that of the device.
    std::optional<uint16_t> instance{};
    std::optional<uint16_t> compute{}; // of one of several compute instances in that
    std::string device{};              // that it is a part of: the id
    unsigned slices = 0;               // of the device's; of a device, that it is divided in: 0 where it is not
};

class MachineGpus {
public:
    // NVML's, of all the driver's files, of neither what the kubelet offers. Those once known stay: one that fails is
    // still paid for.
    void refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet);

    const std::vector<MachineGpu>& all() const { return all_; }
    const MachineGpu* at(const Gpu& gpu) const;           // null: it is none of these
    const MachineGpu* named(std::string_view name) const; // by UUID, or by index as NVIDIA_VISIBLE_DEVICES has it
    bool divided() const;                                 // some, by MIG
    // What of a time is whose, by slices: of a device that is not divided, and of an instance, its own; of one that is
    // divided, what is in no instance, or in no compute instance of one that has several. In the order of all().
    std::vector<uint64_t> times(uint64_t ns) const;
    // "nvml", and "sysfs" where all are AMD's; "driver", "kubelet"; empty: none is known
    std::string_view source() const { return source_; }

private:
    void learn(const MachineGpu& gpu);
    void learn_instances(const NvmlDeviceState& state);
    static std::vector<MachineGpu> parts_of(const MachineGpu& whole, const NvmlInstance& instance);

    std::vector<MachineGpu> all_;
    std::string_view source_;
};

// Of /proc/driver/nvidia/gpus/BDF/information: UUID, model and minor number.
MachineGpu parse_gpu_information(std::string_view text, const std::string& place);

} // namespace gpusnoop
