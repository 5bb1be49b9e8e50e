// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/grants.hpp"

#include "base/error.hpp"
#include "proc/process.hpp"
#include "tools/gpuspend/ledger.hpp"
#include "who/cgroup.hpp"
#include "who/host_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace gpusnoop {
namespace {

constexpr uint64_t scan_interval_ns = 5'000'000'000;

} // namespace

// Reads the checkpoint before the first refresh(), because the list of devices (MachineGpus), which refresh() needs,
// may have no other source.
Grants::Grants(const std::string& host_root) : host_root_(host_root), owners_(host_root)
{
    read_checkpoint();
}

uint64_t Grants::parts(const std::string& device) const
{
    const auto found = kubelet_.parts.find(device);
    return found == kubelet_.parts.end() ? 1 : std::max<uint64_t>(found->second, 1);
}

bool Grants::found_kubelet(uint64_t now_ns)
{
    if (!kubelet_.readable && now_ns >= next_scan_ns_) {
        read_checkpoint();
        next_scan_ns_ = kubelet_.readable ? 0 : now_ns + scan_interval_ns;
    }
    return kubelet_.readable;
}

void Grants::refresh(const MachineGpus& gpus, uint64_t now_ns)
{
    if (now_ns < next_scan_ns_)
        return;
    next_scan_ns_ = now_ns + scan_interval_ns;
    read_checkpoint();
    allotments_.sweep();
    if (!gpus.all().empty())
        scan(gpus);
}

// Reads the kubelet's checkpoint and the state files of DRA. If a file cannot be parsed, warns once and keeps its last
// content.
void Grants::read_checkpoint()
{
    const auto text = HostFiles(host_root_).read(kubelet_checkpoint);
    KubeletDevices devices = text ? parse_kubelet_checkpoint(*text) : KubeletDevices();
    if (devices.readable || !text)
        kubelet_ = std::move(devices);
    else
        warn_once(kubelet_checkpoint);
    read_claims();
}

void Grants::read_claims()
{
    const HostFiles files(host_root_);
    const auto read = [&](const char* path, auto parse, ByClaim& to) {
        const auto text = files.read(path);
        if (auto claims = text ? parse(*text) : ByClaim())
            to = std::move(*claims);
        else
            warn_once(path);
    };
    read(dra_kubelet_state, parse_dra_pods, claim_pods_);
    read(dra_driver_state, parse_dra_devices, claim_devices_);
}

void Grants::warn_once(const char* path)
{
    if (warned_.insert(path).second)
        warn(fmt::format("cannot parse '/{}': device allocations in it are unknown", path));
}

void Grants::scan(const MachineGpus& gpus)
{
    all_.clear();
    stale_ = unknown_ = 0;
    const MigFiles mig(host_root_ == "/" ? "" : host_root_); // files of the current MIG instances
    Pods pods;
    std::set<std::pair<uint64_t, uint64_t>> alive;
    for (const ContainerCgroup& found : container_cgroups(host_root_)) {
        GrantedDevice granted{.cgroup = {}, .pod_uid = found.owner.pod_uid, .container_id = found.owner.container_id};
        granted.cgroup.v2 = found.id;
        alive.emplace(granted.cgroup.v2, granted.cgroup.v1);
        owners_.learn(granted.cgroup, {{.path = found.path, .owner = found.owner}});
        const Owner& owner = owners_.owner(granted.cgroup);
        if (granted.pod_uid.empty())
            granted.pod_uid = owner.pod_uid();
        granted.container = owner.names.container;
        if (!granted.pod_uid.empty() && found.owner.node_id.empty()) // pods inside a node of kind (Kubernetes in
                                                                     // Docker) belong to another kubelet
            pods[granted.pod_uid].push_back(granted);
        if (!granted.container_id.empty())
            add_configured(granted, owner, gpus, mig);
        if (found.process)
            add_job(granted, found.process, gpus);
    }
    owners_.forget_unless([&](const cgroups& ids) { return alive.contains({ids.v2, ids.v1}); });
    add_granted(pods, gpus);
    add_claimed(pods, gpus);
}

// Returns one of a pod's cgroups, preferably one with a known pod name. The name may be known for the cgroups of the
// pod's containers, but not for the pod's own cgroup.
const GrantedDevice& Grants::of_pod(const std::vector<GrantedDevice>& parts)
{
    const auto named =
        std::ranges::find_if(parts, [&](const GrantedDevice& part) { return !owner(part).names.pod.empty(); });
    return named == parts.end() ? parts.front() : *named;
}

void Grants::add_granted(const Pods& pods, const MachineGpus& gpus)
{
    for (const Grant& grant : kubelet_.grants) {
        const auto pod = pods.find(grant.pod_uid);
        if (pod == pods.end()) {
            stale_++;
            continue;
        }
        const MachineGpu* gpu = gpus.named(grant.device);
        if (!gpu) {
            unknown_++;
            continue;
        }
        const auto container = std::ranges::find(pod->second, grant.container, &GrantedDevice::container);
        GrantedDevice granted = container == pod->second.end() ? of_pod(pod->second) : *container;
        if (container == pod->second.end())
            granted.container_id.clear();
        granted.container = grant.container;
        granted.parts = parts(grant.device) > 1 ? grant.parts : 0;
        add(std::move(granted), gpu, HELD_BY_KUBELET);
    }
}

// Claims belong to pods, not to single containers.
void Grants::add_claimed(const Pods& pods, const MachineGpus& gpus)
{
    for (const auto& [claim, uids] : claim_pods_) {
        const auto devices = claim_devices_.find(claim);
        if (devices == claim_devices_.end())
            continue; // another DRA driver serves this claim
        for (const std::string& uid : uids) {
            const auto pod = pods.find(uid);
            if (pod == pods.end()) {
                stale_++;
                continue;
            }
            for (const std::string& device : devices->second) {
                const MachineGpu* const gpu = gpus.named(device);
                if (!gpu) {
                    unknown_++;
                    continue;
                }
                GrantedDevice granted = of_pod(pod->second);
                granted.container_id.clear();
                granted.container.clear();
                add(std::move(granted), gpu, HELD_BY_DRA);
            }
        }
    }
}

void Grants::add(GrantedDevice granted, const MachineGpu* gpu, uint8_t source)
{
    if (!gpu)
        return;
    granted.device = gpu->id;
    granted.source = source;
    all_.push_back(std::move(granted));
}

// Slurm lists the GPUs of a job in the environment of its processes.
void Grants::add_job(const GrantedDevice& step, pid_t process, const MachineGpus& gpus)
{
    const auto pid = static_cast<uint32_t>(process);
    for (const std::string& name : devices_in(allotments_.of(pid, start_time_ns(process)).slurm_gpus))
        add(step, gpus.named(name), HELD_BY_SLURM);
}

// If a container has a MIG instance, its configuration also has the file of the whole device. That file is ignored.
void Grants::add_configured(const GrantedDevice& container, const Owner& owner, const MachineGpus& gpus,
                            const MigFiles& mig)
{
    for (const std::string& name : devices_in(owner.names.visible_devices))
        add(container, gpus.named(name), HELD_BY_ENVIRONMENT);
    std::set<MigAccess> instances; // MIG instances whose files the container has
    for (const unsigned minor : owner.names.cap_files)
        if (const auto access = mig.at(minor))
            instances.insert(*access);
    for (const auto& [minor, instance, compute] : most_specific(instances))
        add(container, gpus.at({Gpu::By::file, static_cast<uint16_t>(minor), instance, compute.value_or(Gpu::whole)}),
            HELD_BY_CONFIG);
    for (const unsigned minor : owner.names.gpu_files)
        if (std::ranges::find(instances, minor, &MigAccess::gpu_minor) == instances.end())
            add(container, gpus.at({Gpu::By::file, static_cast<uint16_t>(minor)}), HELD_BY_CONFIG);
}

} // namespace gpusnoop
