// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/held.hpp"

namespace gpusnoop::cudatop {
namespace {

// Key of the pod or, without a pod, of the container or Slurm job; empty if there is none.
std::string owner_key(const Owner& owner)
{
    return !owner.pod_uid().empty() ? "pod " + owner.pod_uid()
           : owner.container()      ? "container " + owner.container_key()
                                    : owner.where.slurm_job;
}

Gpu gpu_of(const MachineGpu& gpu)
{
    const uint16_t instance = gpu.instance.value_or(Gpu::whole), compute = gpu.compute.value_or(Gpu::whole);
    if (gpu.index)
        return {Gpu::By::index, static_cast<uint16_t>(*gpu.index), instance, compute};
    return gpu.minor ? Gpu{Gpu::By::file, static_cast<uint16_t>(*gpu.minor), instance, compute} : Gpu();
}

} // namespace

void Held::refresh(const NvmlFigures& figures, uint64_t now_ns)
{
    if (!grants_.found_kubelet(now_ns))
        return; // without a kubelet, no GPU is allotted, so the scan of all cgroups is skipped
    gpus_.refresh(figures, host_root_, grants_.kubelet());
    grants_.refresh(gpus_, now_ns);
    by_owner_.clear();
    for (const GrantedDevice& grant : grants_.all())
        if (const MachineGpu* const gpu = gpus_.named(grant.device))
            by_owner_[owner_key(grants_.owner(grant))].insert(gpu_of(*gpu));
    by_owner_.erase("");
}

std::set<Gpu> Held::of(const WhoSeen& who) const
{
    std::set<Gpu> all;
    for (const Owner* const owner : who.owners)
        if (const auto found = by_owner_.find(owner_key(*owner)); found != by_owner_.end())
            all.insert(found->second.begin(), found->second.end());
    return all;
}

} // namespace gpusnoop::cudatop
