// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_path.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <fmt/format.h>
#include <random>
#include <string>
#include <vector>

using namespace gpusnoop;

namespace {

const std::string id = "3f2a91c07bd84e6655d0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abc";
const std::string node = "b7c1d2e3f40516273849506a7b8c9daebfc0d1e2f30415263748596a7b8c9d0e";
const std::string middle = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const std::string pod = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const std::string pod_unit = "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"; // the pod's id as it is written in a slice's name
const std::string garden = "6f4d3c2b-1a09-4877-a655-443322110ffe";
const std::string task = "0123456789abcdef0123456789abcdef"; // of ECS

// Replaces $C by the id of the container, and so on.
std::string expanded(std::string text)
{
    const std::pair<std::string_view, std::string> ids[] = {{"$C", id},
                                                            {"$N", node},
                                                            {"$M", middle},
                                                            {"$P", pod},
                                                            {"$U", pod_unit},
                                                            {"$O", "ffffffff-0000-1111-2222-333333333333"},
                                                            {"$S", "9b8a7c6d5e4f30211203f4e5d6c7a8b9"},
                                                            {"$G", garden},
                                                            {"$T", task}};
    for (const auto& [name, value] : ids)
        for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
            text.replace(at, name.size(), value);
    return text;
}

// All fields that are not empty: "RUNTIME:CONTAINER node=ID pod=ID unit=NAME uid=U job=J step=S of-user".
std::string shown(const CgroupOwner& owner)
{
    std::string text;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty())
            text += fmt::format("{}{}{}", text.empty() ? "" : " ", name, value);
    };
    add("", owner.runtime + (owner.container_id.empty() ? "" : ":" + owner.container_id));
    add("node=", owner.node_id);
    add("pod=", owner.pod_uid);
    add("unit=", owner.unit);
    add("uid=", owner.uid ? std::to_string(*owner.uid) : "");
    add("job=", owner.slurm_job);
    add("step=", owner.slurm_step);
    add("", owner.named_by_user ? "of-user" : "");
    return text;
}

struct Row {
    std::string path; // names after '|' were chosen by users
    std::string owner;
    std::optional<uint32_t> uid = {}; // who chose them
};

void check(const std::vector<Row>& rows)
{
    for (const Row& row : rows) {
        std::string path = expanded(row.path);
        Delegation delegation{.from = path.find('|'), .uid = row.uid};
        if (delegation.from != path.npos)
            path.erase(delegation.from, 1);
        INFO(path);
        CHECK(shown(parse_cgroup_path(path, delegation)) == expanded(row.owner));
    }
}

} // namespace

TEST_CASE("containers of docker, podman and containerd without Kubernetes", "[cgroup]")
{
    const std::string user = "/user.slice/user-1000.slice/user@1000.service/user.slice/";
    check({
        {"/system.slice/docker-$C.scope", "docker:$C"},
        {"/system.slice/docker-$C.scope/init.scope", "docker:$C"}, // the container's own unit
        {"/system.slice/docker-$C.scope/system.slice/nvidia-persistenced.service", "docker:$C"},
        {"/docker/$C", "docker:$C"},
        {"/gpu-jobs/$C", ":$C"},
        {"/docker/$C (deleted)", "docker:$C"},
        {user + "docker-$C.scope", "docker:$C unit=user@1000.service uid=1000 of-user"},

        {"/machine.slice/libpod-$C.scope", "podman:$C"},
        {"/machine.slice/libpod-$C.scope/container", "podman:$C"},
        {"/libpod_parent/libpod-$C", "podman:$C"},
        {"/libpod_parent/$M/libpod-$C", "podman:$C"}, // the first id is that of a podman pod
        {"/machine.slice/machine-libpod_pod_$M.slice/libpod-$C.scope", "podman:$C"},
        {"/system.slice/train.service/libpod-payload-$C", "podman:$C unit=train.service"},
        {user + "libpod-$C.scope/container", "podman:$C unit=user@1000.service uid=1000 of-user"},

        {"/default/$C", "containerd:$C"},
        {"/k8s.io/$C", "containerd:$C"},
        {"/system.slice/nerdctl-$C.scope", "containerd:$C"},
        {"/system.slice/someone-else-$C.scope", ":$C"},
    });
}

TEST_CASE("containers of Kubernetes pods", "[cgroup]")
{
    const std::string burstable = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod";
    const std::string best_effort = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod";
    check({
        {burstable + "$U.slice/cri-containerd-$C.scope", "containerd:$C pod=$P"},
        {"/kubepods.slice/kubepods-pod$U.slice/cri-containerd-$C.scope", "containerd:$C pod=$P"},
        {best_effort + "$U.slice/crio-$C.scope", "cri-o:$C pod=$P"},
        {burstable + "$U.slice/crio-$C.scope/container", "cri-o:$C pod=$P"},
        {burstable + "$U.slice/docker-$C.scope", "docker:$C pod=$P"},
        {"/kubepods/burstable/pod$P/$C", ":$C pod=$P"},
        {"/kubepods/besteffort/pod$P/$C", ":$C pod=$P"},
        {"/kubepods/pod$P/$C", ":$C pod=$P"},
        {"/kubepods/pod$P/crio-$C", "cri-o:$C pod=$P"},
        {"/kubepods/pod$S/$C", ":$C pod=$S"},
        {burstable + "$S.slice/cri-containerd-$C.scope", "containerd:$C pod=$S"},
        {burstable + "$U.slice:cri-containerd:$C", "containerd:$C pod=$P"},
        {"/system.slice/containerd.service/kubepods-besteffort-pod$U.slice:cri-containerd:$C",
         "containerd:$C pod=$P unit=containerd.service"},
        {"/system.slice/crio.service/kubepods-pod$U.slice:crio:$C", "cri-o:$C pod=$P unit=crio.service"},
        {burstable + "$U.slice", "pod=$P"},
        {"/kubepods/burstable/pod$P", "pod=$P"},
    });
}

TEST_CASE("containers in containers", "[cgroup]")
{
    const std::string kind = "/system.slice/docker-$N.scope";
    check({
        {kind + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
                "kubelet-kubepods-besteffort-pod$U.slice/cri-containerd-$C.scope",
         "containerd:$C node=$N pod=$P"},
        {kind + "/kubelet/kubepods/besteffort/pod$P/$C", ":$C node=$N pod=$P"},
        {"/docker/$N/kubelet/kubepods/pod$P/$C", ":$C node=$N pod=$P"},
        {"/docker/$N/kubepods/burstable/pod$P/$C", ":$C node=$N pod=$P"}, // k3d and minikube
        {kind + "/kubepods.slice/kubepods-pod$U.slice/docker-$C.scope", "docker:$C node=$N pod=$P"},
        {kind + "/kubepods.slice:cri-containerd:$C", "docker:$N"},
        // Cgroups created inside of a container belong to that container.
        {"/docker/$C/docker/$M", "docker:$C"},
        {"/docker/$C/docker/$M/docker/$N", "docker:$C"},
        {"/docker/$C/a/kubepods/pod$P/$M", "docker:$C"},
        {"/docker/$C/kubepods/$M", "docker:$C"},
        {"/docker/$C/pod$P/$M", "docker:$C"},
        {"/kubepods/pod$P/$C/kubepods/pod$O/$M", ":$C pod=$P"},
        {"/kubepods/pod$P/pod$O/$C", ":$C pod=$P"},
        {"/docker/$C/user.slice/user-1000.slice/session-2.scope", "docker:$C"},
        {"/docker/$C/slurm/uid_1000/job_7/step_0", "docker:$C"},
        // For a system container of sysbox, the owner is that container, whatever runs inside it.
        {"/docker/$C/syscont-cgroup-root/init.scope", "docker:$C"},
        {"/docker/$C/syscont-cgroup-root/docker/$M", "docker:$C"},
        {"/kubepods/pod$P/crio-$C/syscont-cgroup-root/kubepods/pod$O/$M", "cri-o:$C pod=$P"},
    });
    const Delegation no_nodes{.uid = {}, .nodes = false};
    CHECK(shown(parse_cgroup_path(expanded(kind + "/kubepods/pod$P/$C"), no_nodes)) == "docker:" + node);
}

TEST_CASE("paths in a cgroup namespace", "[cgroup]")
{
    check({
        {"/../../pod$P/$C", ":$C pod=$P"},
        {"/../cri-containerd-$C.scope", "containerd:$C"},
        {"/../$C", ":$C"},
        {"../../kubepods-pod$U.slice/crio-$C.scope", "cri-o:$C pod=$P"},
        {"/", ""},
        {"/..", ""},
        {"", ""},
    });
}

TEST_CASE("Garden, Mesos and ECS", "[cgroup]")
{
    check({
        {"/garden/$G", ":$G"},
        {"/system.slice/garden.service/garden/$G", ":$G unit=garden.service"},
        {"/mesos/$G", ":$G"},
        {"/ecs/$G/$C", ":$C"}, // the task's id is not taken for a Kubernetes node's
        {"/ecs/cluster/$T/$C", ":$C"},
        {"/ecs/$T/$T-2532581093", ":$T-2532581093"},
        {"/ecs/$T/$T-" + std::string(21, '1'), ""},
        {"/ecs/$T/$T-", ""},
        {"/ecstasks.slice/ecstasks-$T.slice/docker-$C.scope", "docker:$C"},
    });
}

TEST_CASE("systemd units and users", "[cgroup]")
{
    const std::string user_1000 = "/user.slice/user-1000.slice/", manager = user_1000 + "user@1000.service/";
    check({
        {"/system.slice/nvidia-dcgm.service", "unit=nvidia-dcgm.service"},
        {"/system.slice/system-gpu\\x2dworker.slice/gpu\\x2dworker@a\\x2db.service",
         "unit=gpu\\x2dworker@a\\x2db.service"},
        {user_1000 + "session-3.scope", "unit=session-3.scope uid=1000"},
        {"/user.slice/user-0.slice/session-c1.scope", "unit=session-c1.scope uid=0"},
        {manager + "app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope",
         "unit=vte-spawn-1.scope uid=1000 of-user"},
        {"/user.slice/user-0.slice/user@0.service/app.slice/a.service", "unit=a.service uid=0"},
        // Users choose the names of cgroups below their own service; systemd chooses the name of the slice above it.
        {manager + "user-0.slice", "unit=user@1000.service uid=1000"},
        {"/user.slice/user-4294967295.slice", "uid=4294967295"},
        {"/user.slice/user-4294967296.slice", ""},
        {"/user.slice/user-.slice", ""},
        {"/user.slice/user--1.slice", ""},
        {"/user.slice/user-1000x.slice", ""},
        {"/init.scope", "unit=init.scope"},
        {"/system.slice/.service", ""},
        {"/system.slice/a.service/payload", "unit=a.service"},
        {"/machine.slice/machine-vm1.scope", "unit=machine-vm1.scope"},
        {"/system.slice/ssh.socket", ""},
    });
}

TEST_CASE("Slurm jobs", "[cgroup]")
{
    const std::string v2 = "/system.slice/slurmstepd.scope", no_job = "unit=slurmstepd.scope";
    check({
        {v2 + "/job_1234/step_0/user/task_0", "unit=slurmstepd.scope job=1234 step=0"},
        {v2 + "/job_1234/step_batch/user/task_0", "unit=slurmstepd.scope job=1234 step=batch"},
        {v2 + "/job_1234/step_extern/user/task_special", "unit=slurmstepd.scope job=1234 step=extern"},
        {v2 + "/job_1234/step_interactive/slurm", "unit=slurmstepd.scope job=1234 step=interactive"},
        {"/system.slice/node01_slurmstepd.scope/job_1234/step_7/user/task_3",
         "unit=node01_slurmstepd.scope job=1234 step=7"},
        {v2 + "/job_1234", "unit=slurmstepd.scope job=1234"},
        {v2 + "/job_1234_7/step_1+2", "unit=slurmstepd.scope job=1234_7 step=1+2"},
        {v2 + "/system", no_job},
        {v2 + "/s5K1KX0M7QR2ZT/step_0/user/task_0", "unit=slurmstepd.scope job=s5K1KX0M7QR2ZT step=0"},
        {"/system.slice/node01_slurmstepd.scope/s0000000000001/step_extern",
         "unit=node01_slurmstepd.scope job=s0000000000001 step=extern"},
        {"/slurm/uid_1000/job_1234/step_0/task_0", "uid=1000 job=1234 step=0"},
        {"/slurm_node01/uid_1000/job_99+1/step_batch", "uid=1000 job=99+1 step=batch"},
        // Names of jobs and steps are valid only below Slurm's cgroup, and only in the order job, step.
        {"/job_1234/step_0", ""},
        {"/uid_1000/job_1234", ""},
        {v2 + "/step_0/job_1234", "unit=slurmstepd.scope job=1234"},
        {v2 + "/job_/step_0", no_job},
        {v2 + "/job_abc", no_job},
        {"/s5K1KX0M7QR2ZT/step_0", ""},
        {v2 + "/s5K1KX0M7QR2Z/step_0", no_job},   // too short
        {v2 + "/s5K1KX0M7QR2ZTT/step_0", no_job}, // too long
        {v2 + "/s5K1KX0M7QR2ZU/step_0", no_job},  // an invalid digit
        {v2 + "/sG000000000000/step_0", no_job},  // more than 64 bits
        {v2 + "/S5K1KX0M7QR2ZT/step_0", no_job},
        {v2 + "/job_1;rm", no_job},
        {v2 + "/job_1/step_\x1b[2J", "unit=slurmstepd.scope job=1"},
    });
}

TEST_CASE("names below a user's cgroup belong to that user", "[cgroup]")
{
    const std::string manager = "/user.slice/user-1000.slice/user@1000.service", train = "/system.slice/train.service";
    const std::string in_kubepods = "/kubepods.slice/kubepods-pod$U.slice/cri-containerd-$C.scope";
    check({
        {manager + in_kubepods, "containerd:$C unit=user@1000.service uid=1000 of-user"},
        {manager + "|" + in_kubepods, "containerd:$C unit=user@1000.service uid=1000 of-user", 1000},
        {manager + "/kubepods/pod$P", "unit=user@1000.service uid=1000"},
        {manager + "/slurmstepd.scope/job_1/step_0", "unit=slurmstepd.scope uid=1000 of-user"},
        {manager + "/docker-$N.scope/kubelet/kubepods/pod$P/$C", // the tool kind, run by a user
         "docker:$N unit=user@1000.service uid=1000 of-user"},
        {"/user.slice/user-1000.slice/a/user@1000.service/b.service", // root may have moved user@1000.service
         "unit=b.service uid=1000 of-user"},
        {"/user@1000.service/kubepods/pod$P/$C", ":$C pod=$P unit=user@1000.service"},

        // A service whose cgroup systemd has delegated to its user.
        {train + "|" + in_kubepods, "containerd:$C unit=train.service uid=999 of-user", 999},
        {train + "|/libpod-payload-$C", "podman:$C unit=train.service uid=999 of-user", 999},
        {train + "|/nvidia-dcgm.service", "unit=train.service", 999},
        {train + "|" + in_kubepods, "unit=train.service", {}},
        {train + "|", "unit=train.service", 999},
        {"|/a/$C", ":$C uid=999 of-user", 999},
        {"/a" + in_kubepods + "|", "containerd:$C pod=$P", 999},

        // Cgroups created inside of a container, a pod or a job belong to that container, pod or job.
        {"/kubepods/pod$P|/$M", "pod=$P", 999},
        {"/docker/$C|/kubepods/pod$P/$M", "docker:$C", 999},
        {"/docker/$C/kubepods|/pod$P/$M", "docker:$C", 999},
        {"/system.slice/slurmstepd.scope/job_7|/docker-$C.scope", "unit=slurmstepd.scope job=7", 999},
    });
}

TEST_CASE("names that only look like containers", "[cgroup]")
{
    const std::string shorter = id.substr(1), shorter_pod = pod.substr(1), xs(300, 'x');
    std::string odd("/docker/\0\xff/", 10);
    odd.append(256, 's');
    check({
        {"/system.slice/crio-conmon-$C.scope", "unit=crio-conmon-$C.scope"},
        {"/machine.slice/libpod-conmon-$C.scope", "unit=libpod-conmon-$C.scope"},
        {"/libpod_parent/libpod-conmon-$C", ""},
        {"/libpod_parent/conmon", ""},
        {"/kubepods.slice/kubepods-pod$U.slice/crio-conmon-$C.scope", "pod=$P unit=crio-conmon-$C.scope"},
        {"/system.slice/var-lib-docker-overlay2-$C-merged.mount", ""},
        {"/system.slice/var-lib-containers-$C.mount", ""},
        {"/system.slice/$C.mount", ""},
        {"/system.slice/docker-$C.service", "unit=docker-$C.service"},
        {"/system.slice/docker-$C.slice", ""},
        {"/docker/" + shorter, ""},
        {"/docker/$C0", ""},
        {"/system.slice/docker-$C0.scope", "unit=docker-$C0.scope"},
        {"/system.slice/docker-" + shorter + ".scope", "unit=docker-" + shorter + ".scope"},
        {"/system.slice/docker$C.scope", "unit=docker$C.scope"},
        {"/docker/" + id.substr(0, 63) + "C", ""},
        {"/docker/" + id.substr(0, 63) + "g", ""},
        {"/docker/$C\n", ""},
        {"/docker/unknown-$C", ""},
        {"/x:$C", ""},
        {"/a:b:" + id.substr(2), ""},
        {"/garden/" + garden.substr(1), ""},
        {"/garden/$U", ""},
        {"/kubepods/pod" + shorter_pod + "/x", ""},
        {"/kubepods/pod$P0/x", ""},
        {"/kubepods/pod../x", ""},
        {"/kubepods.slice/kubepods-pod$S0.slice", ""},
        {"/docker/" + xs + "-$C", ""},
        {odd + ".service", ""},
    });
}

TEST_CASE("a path of megabytes takes linear time", "[cgroup]")
{
    const std::clock_t start = std::clock();
    const std::string slashes(4 << 20, '/');
    std::string deep;
    while (deep.size() < (4 << 20))
        deep += "/docker-" + node + ".scope/user-1.slice/kubepods-pod" + pod_unit + ".slice";
    CHECK(shown(parse_cgroup_path(deep + "/docker/" + id)) == "docker:" + node);
    CHECK(shown(parse_cgroup_path(slashes + "docker/" + id)) == "docker:" + id);
    CHECK(parse_cgroup_path(std::string(4 << 20, ':')) == CgroupOwner{});
    CHECK(parse_cgroup_path("/" + std::string(4 << 20, 'a')) == CgroupOwner{});
    // It takes milliseconds. Quadratic time would exceed this limit.
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 20);
}

TEST_CASE("any bytes are accepted as a path", "[cgroup]")
{
    const std::array<std::string, 24> pieces = {
        "/",     "/",       ":",       "-",      "..",     "docker",   "docker-", "cri-containerd-",
        "crio-", "libpod-", "conmon-", ".scope", ".slice", ".service", "pod",     "kubepods-pod",
        "user-", "job_",    "step_",   "slurm",  id,       pod_unit,   garden,    " (deleted)"};
    std::mt19937 random(20240607); // NOLINT(cert-msc51-cpp): same paths in every run
    size_t containers = 0;
    for (int round = 0; round < 50000; round++) {
        std::string path;
        for (size_t i = random() % 12; i > 0; i--) {
            if (random() % 8 == 0)
                path += static_cast<char>(random() % 256);
            else
                path += pieces.at(random() % pieces.size());
        }
        const CgroupOwner owner = parse_cgroup_path(path);
        containers += owner.container_id.empty() ? 0 : 1;
        for (const std::string& got : {owner.container_id, owner.node_id, owner.pod_uid})
            if (got.size() > 64 || got.find_first_not_of("0123456789abcdef-") != std::string::npos)
                FAIL(got << " out of " << path);
        if (owner.node_id == owner.container_id && !owner.node_id.empty())
            FAIL("a container is its own node: " << path);
    }
    CHECK(containers > 500);
}
