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

// Which devices there are may be known from there alone.
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
    if (!kubelet_.readable && now_ns >= next_look_ns_) {
        read_checkpoint();
        next_look_ns_ = kubelet_.readable ? 0 : now_ns + scan_interval_ns;
    }
    return kubelet_.readable;
}

void Grants::refresh(const MachineGpus& gpus, uint64_t now_ns)
{
    if (now_ns < next_look_ns_)
        return;
    next_look_ns_ = now_ns + scan_interval_ns;
    read_checkpoint();
    allotments_.sweep();
    if (!gpus.all().empty())
        look(gpus);
}

// They are replaced in one step. One that cannot be read is told once, and what was known goes on.
void Grants::read_checkpoint()
{
    const auto text = HostFiles(host_root_).read(kubelet_checkpoint);
    KubeletDevices devices = text ? parse_kubelet_checkpoint(*text) : KubeletDevices();
    if (devices.readable || !text)
        kubelet_ = std::move(devices);
    else
        complain(kubelet_checkpoint);
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
            complain(path);
    };
    read(dra_kubelet_state, parse_dra_pods, claim_pods_);
    read(dra_driver_state, parse_dra_devices, claim_devices_);
}

void Grants::complain(const char* path)
{
    if (complained_.insert(path).second)
        warn(fmt::format("what devices are given to cannot be read: /{}", path));
}

void Grants::look(const MachineGpus& gpus)
{
    all_.clear();
    stale_ = unknown_ = 0;
    const MigFiles mig(host_root_ == "/" ? "" : host_root_); // of instances that there are now
    Pods pods;
    std::set<std::pair<uint64_t, uint64_t>> alive;
    for (const ContainerCgroup& found : container_cgroups(host_root_)) {
        Given given{.cgroup = {}, .pod_uid = found.owner.pod_uid, .container_id = found.owner.container_id};
        given.cgroup.v2 = found.id;
        alive.emplace(given.cgroup.v2, given.cgroup.v1);
        owners_.learn(given.cgroup, {{.path = found.path, .owner = found.owner}});
        const Owner& owner = owners_.owner(given.cgroup);
        if (given.pod_uid.empty())
            given.pod_uid = owner.pod_uid();
        given.container = owner.names.container;
        if (!given.pod_uid.empty() && found.owner.node_id.empty()) // this host's kubelet is meant below
            pods[given.pod_uid].push_back(given);
        if (!given.container_id.empty())
            add_configured(given, owner, gpus, mig);
        if (found.process)
            add_job(given, found.process, gpus);
    }
    owners_.forget_unless([&](const cgroups& ids) { return alive.contains({ids.v2, ids.v1}); });
    add_granted(pods, gpus);
    add_claimed(pods, gpus);
}

// What is known by its name, if anything of the pod is: its own cgroup may not be, where its containers are.
const Given& Grants::of_pod(const std::vector<Given>& parts)
{
    const auto named = std::ranges::find_if(parts, [&](const Given& part) { return !owner(part).names.pod.empty(); });
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
        const auto container = std::ranges::find(pod->second, grant.container, &Given::container);
        Given given = container == pod->second.end() ? of_pod(pod->second) : *container;
        if (container == pod->second.end())
            given.container_id.clear();
        given.container = grant.container;
        given.parts = parts(grant.device) > 1 ? grant.parts : 0;
        add(std::move(given), gpu, HELD_BY_KUBELET);
    }
}

// A claim says which pods have it, and not which of their containers.
void Grants::add_claimed(const Pods& pods, const MachineGpus& gpus)
{
    for (const auto& [claim, uids] : claim_pods_) {
        const auto devices = claim_devices_.find(claim);
        if (devices == claim_devices_.end())
            continue; // of another driver
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
                Given given = of_pod(pod->second);
                given.container_id.clear();
                given.container.clear();
                add(std::move(given), gpu, HELD_BY_DRA);
            }
        }
    }
}

void Grants::add(Given given, const MachineGpu* gpu, uint8_t source)
{
    if (!gpu)
        return;
    given.device = gpu->id;
    given.source = source;
    all_.push_back(std::move(given));
}

// Slurm tells the processes of a job which of the node's GPUs are the job's.
void Grants::add_job(const Given& step, pid_t process, const MachineGpus& gpus)
{
    const auto pid = static_cast<uint32_t>(process);
    for (const std::string& name : devices_in(allotments_.of(pid, start_time_ns(process)).slurm_gpus))
        add(step, gpus.named(name), HELD_BY_SLURM);
}

// With an instance of MIG, a container has the file of its device, too.
void Grants::add_configured(const Given& container, const Owner& owner, const MachineGpus& gpus, const MigFiles& mig)
{
    for (const std::string& name : devices_in(owner.names.visible_devices))
        add(container, gpus.named(name), HELD_BY_ENVIRONMENT);
    std::set<MigAccess> instances; // the files of an instance, and of compute instances in it
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
