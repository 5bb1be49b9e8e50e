// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, whose time is paid for whether anybody uses them or not.
#pragma once

#include "calls/gpu.hpp"
#include "nvml/nvml_figures.hpp"
#include "spend/kubelet.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct MachineGpu {
    std::string id;                       // its UUID; where nobody tells it, its place: "0000:3b:00.0", "gpu 0"
    std::string model;                    // printable; empty unknown
    std::optional<unsigned> index, minor; // nvidia-smi's, and that of /dev/nvidiaN
};

class MachineGpus {
public:
    // NVML's, of all the driver's files, of neither what the kubelet offers. Those once known stay: one that fails is
    // still paid for.
    void refresh(const NvmlFigures& nvml, const std::string& host_root, const KubeletDevices& kubelet);

    const std::vector<MachineGpu>& all() const { return all_; }
    const MachineGpu* at(const Gpu& gpu) const;           // null: it is none of these
    const MachineGpu* named(std::string_view name) const; // by UUID, or by index as NVIDIA_VISIBLE_DEVICES has it
    std::string_view source() const { return source_; }   // "nvml", "driver", "kubelet"; empty: none is known

private:
    void learn(const MachineGpu& gpu);

    std::vector<MachineGpu> all_;
    std::string_view source_;
};

// Of /proc/driver/nvidia/gpus/BDF/information: UUID, model and minor number.
MachineGpu parse_gpu_information(std::string_view text, const std::string& place);

} // namespace gpusnoop
