// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs, as the kernel's amdgpu and KFD (ROCm's driver) show them in sysfs: /sys/class/drm/cardN/device and
// /sys/class/kfd/kfd/topology. No library is needed, nor would one tell more. Linux 6.1 to 7.3.
#pragma once

#include "gpu/nvml.hpp"
#include "who/host_files.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct AmdDevice {
    std::string pci;               // "0000:03:00.0"
    std::string folder;            // below the root: "sys/class/drm/card0/device"
    std::string name, uuid;        // printable; "GPU-" and 16 digits, as in ROCR_VISIBLE_DEVICES; empty: not told
    std::set<std::string> kfd_ids; // KFD's numbers of it: one for each part that it is divided in
    unsigned compute_units = 0;    // of all parts; 0: not told
};

// In the order of their PCI addresses. root: in whose sys.
std::vector<AmdDevice> find_amd_devices(const std::string& root);

// As it is now. Of one that sleeps nothing but what it is: to read more would wake it up.
NvmlDeviceState amd_device_state(const AmdDevice& device, unsigned index, const HostFiles& host);

// The number at the beginning of a text, and nothing but white space behind it; nullopt: it is none.
std::optional<uint64_t> only_number(std::string_view text);

} // namespace gpusnoop
