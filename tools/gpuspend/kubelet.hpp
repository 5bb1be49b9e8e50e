// SPDX-License-Identifier: Apache-2.0
// Parsers for the kubelet's checkpoint files, which list device allocations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// A container's part of one device. All replicas of a shared device (time slicing, MPS) have the same device name.
struct Grant {
    std::string pod_uid, container;
    std::string device; // "GPU-<uuid>", "MIG-<uuid>", or another plugin's name
    uint64_t parts = 1; // number of the device's replicas that are allocated to the container; 1 if the device is not
                        // shared
};

struct KubeletDevices {
    bool readable = false;     // the text could be parsed as a checkpoint
    std::vector<Grant> grants; // may include pods that have ended, because the file is only written at allocations
    std::map<std::string, uint64_t> parts; // by device: number of replicas that its plugin offers
    std::set<std::string> resources;       // names of the resources that NVIDIA's plugin has registered, such as
                                           // "nvidia.com/gpu"
};

constexpr const char* kubelet_checkpoint = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

// Parses allocations of resources whose names begin with "nvidia.com/". DeviceIDs are one list up to Kubernetes 1.19,
// and one list per NUMA node in later versions. The checksum covers a dump of Go structs, so it cannot be verified
// here.
KubeletDevices parse_kubelet_checkpoint(std::string_view text);

// Dynamic resource allocation (DRA): the kubelet's file lists the pods of each claim, and the file of NVIDIA's driver
// lists the devices prepared for each claim.
constexpr const char* dra_kubelet_state = "var/lib/kubelet/dra_manager_state";
constexpr const char* dra_driver_state = "var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json";

using ByClaim = std::map<std::string, std::set<std::string>>; // pods or devices, by uid of the claim

// Parses dra_kubelet_state: returns the uids of the pods of each claim, or nullopt if the text is malformed.
std::optional<ByClaim> parse_dra_pods(std::string_view text);
// Parses dra_driver_state: returns the devices of each claim ("GPU-<uuid>", "MIG-<uuid>"), or nullopt if the text is
// malformed. May contain claims of pods that no longer exist.
std::optional<ByClaim> parse_dra_devices(std::string_view text);

} // namespace gpusnoop
