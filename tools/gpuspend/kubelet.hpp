// SPDX-License-Identifier: Apache-2.0
// What the kubelet's device manager has given to which container: its own checkpoint on the node's disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// A container's part of one device. Replicas of a device that is shared (time slices, MPS) have the same id.
struct Grant {
    std::string pod_uid, container;
    std::string device; // "GPU-<uuid>", "MIG-<uuid>", or as another plugin names it
    uint64_t parts = 1; // of the device's
};

struct KubeletDevices {
    bool readable = false;                 // the text is a checkpoint
    std::vector<Grant> grants;             // of pods that may be long gone: the file is written when one is given
    std::map<std::string, uint64_t> parts; // of each device that a plugin offers: 1, or its replicas
    std::set<std::string> resources;       // of NVIDIA's plugin that were there
};

constexpr const char* kubelet_checkpoint = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

// Of resources that begin with "nvidia.com/". DeviceIDs are a list up to Kubernetes 1.19, and lists by NUMA node since.
// The checksum, of a dump of Go structs, cannot be checked.
KubeletDevices parse_kubelet_checkpoint(std::string_view text);

// What has been given to pods by dynamic resource allocation (DRA): which pods have a claim, by the kubelet, and which
// devices are prepared for it, by NVIDIA's driver. Both on the node's disk.
constexpr const char* dra_kubelet_state = "var/lib/kubelet/dra_manager_state";
constexpr const char* dra_driver_state = "var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json";

using ByClaim = std::map<std::string, std::set<std::string>>; // by the claim's uid

// uids of the pods. nullopt: it is no such file.
std::optional<ByClaim> parse_dra_pods(std::string_view text);
// "GPU-<uuid>", "MIG-<uuid>". Claims of pods that are gone may be among them.
std::optional<ByClaim> parse_dra_devices(std::string_view text);

} // namespace gpusnoop
