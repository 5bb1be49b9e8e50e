// SPDX-License-Identifier: Apache-2.0
// Cgroup paths. Users can create cgroups in subtrees delegated to them.
#include "who/cgroup_path.hpp"
#include "tests/fuzz/target.hpp"
#include "who/container_runtimes.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    constexpr size_t max_name = 255;
    const CgroupOwner owner = parse_cgroup_path(input);
    for (const std::string& id : {owner.container_id, owner.node_id, owner.pod_uid})
        expect(id.empty() || (is_container_id(id) && id.size() <= 64), "ids are valid, so safe in paths");
    for (const std::string& name : {owner.unit, owner.slurm_job, owner.slurm_step}) {
        expect(name.size() <= max_name && name.find('/') == std::string::npos, "each name is one path component");
        expect(input.find(name) != std::string_view::npos, "the path contains each name");
    }
    expect(owner.node_id.empty() || owner.node_id != owner.container_id, "a container is not its own node");
    expect(owner.slurm_step.empty() || !owner.slurm_job.empty(), "a step has a job");
}
