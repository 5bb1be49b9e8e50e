// SPDX-License-Identifier: Apache-2.0
// Paths of cgroups, which anybody to whom a part of the tree was delegated may make.
#include "who/cgroup_path.hpp"
#include "tests/fuzz/target.hpp"
#include "who/container_runtimes.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    constexpr size_t longest = 255;
    const CgroupOwner owner = parse_cgroup_path(input);
    for (const std::string& id : {owner.container_id, owner.node_id, owner.pod_uid})
        expect(id.empty() || (is_container_id(id) && id.size() <= 64), "ids are ids, and so safe in paths");
    for (const std::string& name : {owner.unit, owner.slurm_job, owner.slurm_step}) {
        expect(name.size() <= longest && name.find('/') == std::string::npos, "names are those of one cgroup");
        expect(input.find(name) != std::string_view::npos, "names are in the path");
    }
    expect(owner.node_id.empty() || owner.node_id != owner.container_id, "a container is not its own node");
    expect(owner.slurm_step.empty() || !owner.slurm_job.empty(), "a step is one of a job");
}
