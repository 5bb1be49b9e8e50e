// SPDX-License-Identifier: Apache-2.0
// GPUs allocated to running containers, pods and jobs, even if these have not called CUDA. Sources are checkpoints of
// the kubelet and of NVIDIA's DRA driver, container configurations, and Slurm.
#pragma once

#include "gpu/gpu_files.hpp"
#include "tools/gpuspend/allotments.hpp"
#include "tools/gpuspend/kubelet.hpp"
#include "tools/gpuspend/machine_gpus.hpp"
#include "who/attribution.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpusnoop {

// A device allocated to a container or pod.
struct GrantedDevice {
    std::string device{}; // MachineGpu::id
    uint64_t parts = 0;   // number of allocated replicas of the device; 0: the whole device
    uint8_t source = 0;   // enum HeldBy
    cgroups cgroup{};     // cgroup of the container or, if that is not known, of the pod
    std::string pod_uid{}, container_id{}, container{};
};

class Grants {
public:
    explicit Grants(const std::string& host_root);

    // Scans again if a few seconds have passed. gpus: known devices, to resolve names.
    void refresh(const MachineGpus& gpus, uint64_t now_ns);

    const std::vector<GrantedDevice>& all() const { return all_; }
    const Owner& owner(const GrantedDevice& granted) { return owners_.owner(granted.cgroup); }
    Allotments& allotments() { return allotments_; }
    const KubeletDevices& kubelet() const { return kubelet_; }
    // True if the kubelet has a checkpoint. If it is missing, retries every few seconds.
    bool found_kubelet(uint64_t now_ns);
    uint64_t parts(const std::string& device) const; // number of replicas of the device
    // Number of grants in the checkpoints that name a pod that no longer exists.
    uint64_t stale() const { return stale_; }
    // Number of grants in the checkpoints that name a device that is not in the list of GPUs.
    uint64_t unknown() const { return unknown_; }

private:
    // By pod uid: the existing cgroups of the pod and its containers.
    using Pods = std::map<std::string, std::vector<GrantedDevice>>;
    void read_checkpoint();
    void read_claims();
    void warn_once(const char* path);
    const GrantedDevice& of_pod(const std::vector<GrantedDevice>& parts);
    void add_granted(const Pods& pods, const MachineGpus& gpus);
    void add_claimed(const Pods& pods, const MachineGpus& gpus);
    // gpu: null if the granted device is not on this machine; such a grant is ignored.
    void add(GrantedDevice granted, const MachineGpu* gpu, uint8_t source);
    void add_job(const GrantedDevice& step, pid_t process, const MachineGpus& gpus);
    void scan(const MachineGpus& gpus);
    void add_configured(const GrantedDevice& container, const Owner& owner, const MachineGpus& gpus,
                        const MigFiles& mig);

    std::string host_root_;
    Attribution owners_;
    KubeletDevices kubelet_;
    ByClaim claim_pods_, claim_devices_;
    Allotments allotments_;
    std::vector<GrantedDevice> all_;
    uint64_t next_scan_ns_ = 0;
    uint64_t stale_ = 0, unknown_ = 0;
    std::set<std::string> warned_; // files that were warned about
};

} // namespace gpusnoop
