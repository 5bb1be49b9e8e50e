// SPDX-License-Identifier: Apache-2.0
// State of AMD GPUs, read from the sysfs files of the kernel drivers amdgpu and KFD (ROCm): /sys/class/drm/cardN/device
// and /sys/class/kfd/kfd. ROCm's library is not used, because it reports nothing beyond these files. Supports Linux 6.1
// to 7.3.
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
    std::string folder;            // path relative to the root: "sys/class/drm/card0/device"
    std::string name, uuid;        // printable; empty: unknown. uuid: "GPU-" and 16 hex digits, as in ROCm
    std::set<std::string> kfd_ids; // KFD ids of the device's partitions
    unsigned compute_units = 0;    // sum over all partitions; 0: unknown
};

// Returns the devices sorted by PCI address. root: prefix of /sys.
std::vector<AmdDevice> find_amd_devices(const std::string& root);

// Returns nullptr if no GPU uses the amdgpu driver. first: index to give to the first AMD device; NVIDIA's devices have
// the lower indices. root: prefix of /sys and /proc.
std::unique_ptr<Nvml> open_amd_gpus(unsigned first, const std::string& root = "");

// Rate of a kernel counter that sometimes decreases. Only increases above the previous maximum are counted.
class AmdCount {
public:
    // Returns the increase since the last call, in percent of the elapsed time; nullopt on the first call.
    std::optional<double> percent(uint64_t value_ns, uint64_t now_ns);

private:
    std::optional<uint64_t> max_;
    uint64_t then_ns_ = 0;
};

// AMD GPUs, with the same interface as NVML.
//
// For processes that use ROCm, /sys/class/kfd/kfd/proc shows memory, the busy time of copy engines, and the number of
// compute units that are busy now. It does not show the busy time of compute units. For other processes (Vulkan,
// video), the DRM driver reports memory and busy time in /proc/PID/fdinfo. No busy time is counted twice, because
// fdinfo does not include work in KFD queues.
class AmdGpus : public Nvml {
public:
    // Parameters: see open_amd_gpus().
    AmdGpus(std::vector<AmdDevice> devices, unsigned first, const std::string& root);

    unsigned devices() const override { return static_cast<unsigned>(devices_.size()); }
    std::vector<NvmlProcess> processes() override;
    const std::vector<NvmlFailure>& failures() const override { return none_; }
    std::vector<NvmlDeviceState> states() override;
    std::vector<NvmlUse> process_use() override;

    // Like processes() and process_use(), but the caller passes the current time (CLOCK_MONOTONIC). use() covers the
    // processes found by the last held().
    std::vector<NvmlProcess> held(uint64_t now_ns);
    std::vector<NvmlUse> use(uint64_t now_ns);

private:
    using Place = std::pair<uint32_t, size_t>; // pid, index of the device

    struct Held {
        std::vector<std::pair<std::string, std::string>> kfd; // pairs of a KFD folder and the KFD id of a partition
        bool has_queues = false;
        uint64_t kfd_bytes = 0, drm_bytes = 0;
        uint64_t drm_ns = 0; // busy time of graphics and compute engines, excluding work in KFD queues
        bool is_drm_client = false;
    };
    struct Counts {
        AmdCount copies, engines;
        uint64_t copies_read_ns = 0;
        std::optional<double> copies_percent;
    };

    void read_kfd();
    void read_kfd_folder(uint32_t pid, const std::string& folder);
    void find_clients();
    bool find_clients_in(const std::string& folder, uint32_t pid);
    void read_clients();
    std::optional<size_t> device_of_kfd(std::string_view id) const;

    std::vector<AmdDevice> devices_;
    unsigned first_;
    std::string root_;
    HostFiles host_;
    std::map<uint32_t, std::vector<std::string>> clients_; // by pid: fdinfo files of descriptors that may be DRM files
    uint64_t find_ns_ = 0;                                 // when to call find_clients() again
    std::map<Place, Held> held_;
    std::map<Place, Counts> counts_;
    std::vector<NvmlFailure> none_;
};

} // namespace gpusnoop
