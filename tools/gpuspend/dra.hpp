// SPDX-License-Identifier: Apache-2.0
// What has been given to pods by dynamic resource allocation (DRA): which pods have a claim, by the kubelet, and which
// devices are prepared for it, by NVIDIA's driver. Both on the node's disk.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace gpusnoop {

constexpr const char* dra_kubelet_state = "var/lib/kubelet/dra_manager_state";
constexpr const char* dra_driver_state = "var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json";

using ByClaim = std::map<std::string, std::set<std::string>>; // by the claim's uid

// uids of the pods. nullopt: it is no such file.
std::optional<ByClaim> parse_dra_pods(std::string_view text);
// "GPU-<uuid>", "MIG-<uuid>". Claims of pods that are gone may be among them.
std::optional<ByClaim> parse_dra_devices(std::string_view text);

} // namespace gpusnoop
