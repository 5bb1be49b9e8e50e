// SPDX-License-Identifier: Apache-2.0
// Which GPUs have been given to which containers and pods that live: by the kubelet's checkpoint, and by how containers
// are configured. None of them need have a process that has ever called CUDA.
#pragma once

#include "spend/kubelet.hpp"
#include "spend/machine_gpus.hpp"
#include "who/attribution.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// To whom, and who says so.
struct Given {
    std::string device{}; // id of a MachineGpu
    uint64_t parts = 0;   // of the device; 0: all of it
    uint8_t source = 0;   // enum HeldBy
    cgroups cgroup{};     // of the container; of its pod where that is not known
    std::string pod_uid{}, container_id{}, container{};
};

class Grants {
public:
    explicit Grants(const std::string& host_root);

    // Looks again every few seconds. gpus: those that names are looked for in.
    void refresh(const MachineGpus& gpus, uint64_t now_ns);

    const std::vector<Given>& all() const { return all_; }
    const Owner& owner(const Given& given) { return owners_.owner(given.cgroup); }
    const KubeletDevices& kubelet() const { return kubelet_; }
    uint64_t parts(const std::string& device) const; // that it is given out in
    // Of the checkpoint: grants of pods that are gone, and of devices that are none of the machine's GPUs.
    uint64_t stale() const { return stale_; }
    uint64_t unknown() const { return unknown_; }

private:
    void read_checkpoint();
    void look(const MachineGpus& gpus);
    void add_configured(const Given& container, const Owner& owner, const MachineGpus& gpus);

    std::string host_root_;
    Attribution owners_;
    KubeletDevices kubelet_;
    std::vector<Given> all_;
    uint64_t next_look_ns_ = 0;
    uint64_t stale_ = 0, unknown_ = 0;
    bool complained_ = false;
};

// Names in NVIDIA_VISIBLE_DEVICES that are devices: none of "all", which is in many images, "none" and "void".
std::vector<std::string> visible_devices(std::string_view value);

} // namespace gpusnoop
