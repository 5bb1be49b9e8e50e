// SPDX-License-Identifier: Apache-2.0
// What ContainerLookup and its helper tell each other. A question has one answer each.
#pragma once

#include "reader/message.hpp"
#include "who/cgroup_path.hpp"
#include "who/containers.hpp"

namespace gpusnoop {

// The question.
void fields(auto& each, same_as_const<CgroupOwner> auto& o)
{
    each(o.runtime, o.container_id, o.node_id, o.pod_uid, o.unit, o.uid, o.slurm_job, o.slurm_step, o.named_by_user);
}

void fields(auto& each, same_as_const<ContainerNames> auto& n)
{
    each(n.container, n.pod, n.pod_namespace, n.pod_uid, n.runtime, n.image, n.sandbox, n.visible_devices, n.gpu_files,
         n.cap_files, n.labels);
}

struct ContainerAnswer {
    CgroupOwner of;
    ContainerNames names;
};

void fields(auto& each, same_as_const<ContainerAnswer> auto& a)
{
    each(a.of, a.names);
}

} // namespace gpusnoop
