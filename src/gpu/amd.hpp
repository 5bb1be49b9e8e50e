// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs, as the kernel's amdgpu and KFD (ROCm's driver) show them in sysfs: /sys/class/drm/cardN/device and
// /sys/class/kfd/kfd/topology. No library is needed, nor would one tell more. Linux 6.1 to 7.3.
#pragma once

#include "gpu/nvml.hpp"
#include "who/host_files.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

// first: the number of the first device, behind those of NVIDIA's. root: in whose sys and proc. nullptr: there is none
// that amdgpu, the kernel's driver, serves.
std::unique_ptr<Nvml> open_amd_gpus(unsigned first, const std::string& root = "");

// One of the kernel's counts: it may stand still or step back, and what it was most is what counts.
class AmdCount {
public:
    // Percent of the time since it was read before; nullopt: this is the first time.
    std::optional<double> percent(uint64_t value_ns, uint64_t now_ns);

private:
    std::optional<uint64_t> most_;
    uint64_t then_ns_ = 0;
};

// The figures of AMD's GPUs behind the same interface as those that NVML has of NVIDIA's.
//
// What processes hold and use, KFD tells of those that use ROCm (/sys/class/kfd/kfd/proc): memory, the time of the copy
// engines, and the compute units that hold work now; not for how long they did. Of others (Vulkan, video) the
// descriptors of what they have open tell (/proc/PID/fdinfo): memory and time. No figure is of both: KFD's queues are
// in no descriptor.
class AmdGpus : public Nvml {
public:
    // As open_amd_gpus() has them.
    AmdGpus(std::vector<AmdDevice> devices, unsigned first, const std::string& root);

    unsigned devices() const override { return static_cast<unsigned>(devices_.size()); }
    std::vector<NvmlProcess> processes() override;
    const std::vector<NvmlFailure>& failures() const override { return none_; }
    std::vector<NvmlDeviceState> states() override;
    std::vector<NvmlUse> process_use() override;

    // Looks at all of them. now_ns: CLOCK_MONOTONIC.
    std::vector<NvmlProcess> held(uint64_t now_ns);
    // Of those that held() has just found.
    std::vector<NvmlUse> use(uint64_t now_ns);

private:
    using Place = std::pair<uint32_t, size_t>; // pid, and which of the devices

    struct Held {
        std::vector<std::pair<std::string, std::string>> kfd; // folders, and KFD's number of the device in each
        bool has_queues = false;
        uint64_t kfd_bytes = 0, drm_bytes = 0;
        uint64_t drm_ns = 0; // of graphics and compute, not KFD's
        bool is_drm_client = false;
    };
    struct Counts {
        AmdCount copies, engines;
        uint64_t copies_read_ns = 0;
        std::optional<double> copies_percent;
    };

    void look_at_kfd();
    void look_at_kfd_folder(uint32_t pid, const std::string& folder);
    void find_clients();
    bool find_clients_in(const std::string& folder, uint32_t pid);
    void look_at_clients();
    std::optional<size_t> device_of_kfd(std::string_view id) const;

    std::vector<AmdDevice> devices_;
    unsigned first_;
    std::string root_;
    HostFiles host_;
    std::map<uint32_t, std::vector<std::string>> clients_; // descriptions of files that may be of DRM, by pid
    uint64_t find_ns_ = 0;                                 // when they are looked for again
    std::map<Place, Held> held_;
    std::map<Place, Counts> counts_;
    std::vector<NvmlFailure> none_;
};

} // namespace gpusnoop
