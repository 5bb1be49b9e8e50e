// SPDX-License-Identifier: Apache-2.0
// Which GPUs have been given to which containers, pods and jobs that live: by checkpoints of the kubelet and of
// NVIDIA's DRA driver, by how containers are configured, and by Slurm. None of them need have a process that has ever
// called CUDA.
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
    Allotments& allotments() { return allotments_; }
    const KubeletDevices& kubelet() const { return kubelet_; }
    // Whether there is a checkpoint of the kubelet; where there is none, it is looked for again every few seconds.
    bool found_kubelet(uint64_t now_ns);
    uint64_t parts(const std::string& device) const; // that it is given out in
    // Of the checkpoint: grants of pods that are gone, and of devices that are none of the machine's GPUs.
    uint64_t stale() const { return stale_; }
    uint64_t unknown() const { return unknown_; }

private:
    using Pods = std::map<std::string, std::vector<Given>>; // what lives of each: its cgroup, and its containers'
    void read_checkpoint();
    void read_claims();
    void complain(const char* path);
    const Given& of_pod(const std::vector<Given>& parts);
    void add_granted(const Pods& pods, const MachineGpus& gpus);
    void add_claimed(const Pods& pods, const MachineGpus& gpus);
    // gpu: null where it is none of this machine, and nothing is added.
    void add(Given given, const MachineGpu* gpu, uint8_t source);
    void add_job(const Given& step, pid_t process, const MachineGpus& gpus);
    void look(const MachineGpus& gpus);
    void add_configured(const Given& container, const Owner& owner, const MachineGpus& gpus, const MigFiles& mig);

    std::string host_root_;
    Attribution owners_;
    KubeletDevices kubelet_;
    ByClaim claim_pods_, claim_devices_;
    Allotments allotments_;
    std::vector<Given> all_;
    uint64_t next_look_ns_ = 0;
    uint64_t stale_ = 0, unknown_ = 0;
    std::set<std::string> complained_; // of which files
};

} // namespace gpusnoop
