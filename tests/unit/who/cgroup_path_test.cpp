// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_path.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <random>
#include <string>
#include <vector>

using namespace gpusnoop;

// Rows set only the fields that they test; other fields are empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

const std::string id = "3f2a91c07bd84e6655d0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abc";
const std::string node = "b7c1d2e3f40516273849506a7b8c9daebfc0d1e2f30415263748596a7b8c9d0e";
const std::string middle = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const std::string pod = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const std::string pod_unit = "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"; // the pod's id as it is written in a slice's name
const std::string other_pod = "ffffffff-0000-1111-2222-333333333333";
const std::string static_pod = "9b8a7c6d5e4f30211203f4e5d6c7a8b9";
const std::string garden = "6f4d3c2b-1a09-4877-a655-443322110ffe";

struct Row {
    std::string path;
    CgroupOwner owner;
    Delegation delegation = {};
};

void check(const std::vector<Row>& rows)
{
    for (const auto& [path, owner, delegation] : rows) {
        INFO(path);
        const CgroupOwner got = parse_cgroup_path(path, delegation);
        CHECK(got.runtime == owner.runtime);
        CHECK(got.container_id == owner.container_id);
        CHECK(got.node_id == owner.node_id);
        CHECK(got.pod_uid == owner.pod_uid);
        CHECK(got.unit == owner.unit);
        CHECK(got.uid == owner.uid);
        CHECK(got.slurm_job == owner.slurm_job);
        CHECK(got.slurm_step == owner.slurm_step);
        CHECK(got.named_by_user == owner.named_by_user);
    }
}

CgroupOwner container(std::string runtime)
{
    return {.runtime = std::move(runtime), .container_id = id};
}

CgroupOwner in_pod(std::string runtime, std::string uid = pod)
{
    return {.runtime = std::move(runtime), .container_id = id, .pod_uid = std::move(uid)};
}

CgroupOwner with_unit(CgroupOwner owner, std::string unit)
{
    owner.unit = std::move(unit);
    return owner;
}

CgroupOwner with_user(CgroupOwner owner, std::string unit, uint32_t uid)
{
    owner.uid = uid;
    owner.named_by_user = true;
    return with_unit(std::move(owner), std::move(unit));
}

CgroupOwner with_node(CgroupOwner owner)
{
    owner.node_id = node;
    return owner;
}

CgroupOwner in_job(std::string unit, std::string job, std::string step)
{
    return {.unit = std::move(unit), .slurm_job = std::move(job), .slurm_step = std::move(step)};
}

} // namespace

TEST_CASE("containers of docker, podman and containerd without Kubernetes", "[cgroup]")
{
    const std::string user = "/user.slice/user-1000.slice/user@1000.service/user.slice/";
    check({
        {"/system.slice/docker-" + id + ".scope", container("docker")},
        {"/system.slice/docker-" + id + ".scope/init.scope", container("docker")}, // the container's own unit
        {"/system.slice/docker-" + id + ".scope/system.slice/nvidia-persistenced.service", container("docker")},
        {"/docker/" + id, container("docker")},
        {"/gpu-jobs/" + id, container("")},
        {"/docker/" + id + " (deleted)", container("docker")},
        {user + "docker-" + id + ".scope", with_user(container("docker"), "user@1000.service", 1000)},

        {"/machine.slice/libpod-" + id + ".scope", container("podman")},
        {"/machine.slice/libpod-" + id + ".scope/container", container("podman")},
        {"/libpod_parent/libpod-" + id, container("podman")},
        {"/libpod_parent/" + middle + "/libpod-" + id, container("podman")}, // the first id is that of a podman pod
        {"/machine.slice/machine-libpod_pod_" + middle + ".slice/libpod-" + id + ".scope", container("podman")},
        {"/system.slice/train.service/libpod-payload-" + id, with_unit(container("podman"), "train.service")},
        {user + "libpod-" + id + ".scope/container", with_user(container("podman"), "user@1000.service", 1000)},

        {"/default/" + id, container("containerd")},
        {"/k8s.io/" + id, container("containerd")},
        {"/system.slice/nerdctl-" + id + ".scope", container("containerd")},
        {"/system.slice/someone-else-" + id + ".scope", container("")},
    });
}

TEST_CASE("containers of Kubernetes pods", "[cgroup]")
{
    const std::string burstable = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + pod_unit;
    check({
        {burstable + ".slice/cri-containerd-" + id + ".scope", in_pod("containerd")},
        {"/kubepods.slice/kubepods-pod" + pod_unit + ".slice/cri-containerd-" + id + ".scope", in_pod("containerd")},
        {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + pod_unit + ".slice/crio-" + id +
             ".scope",
         in_pod("cri-o")},
        {burstable + ".slice/crio-" + id + ".scope/container", in_pod("cri-o")},
        {burstable + ".slice/docker-" + id + ".scope", in_pod("docker")},
        {"/kubepods/burstable/pod" + pod + "/" + id, in_pod("")},
        {"/kubepods/besteffort/pod" + pod + "/" + id, in_pod("")},
        {"/kubepods/pod" + pod + "/" + id, in_pod("")},
        {"/kubepods/pod" + pod + "/crio-" + id, in_pod("cri-o")},
        {"/kubepods/pod" + static_pod + "/" + id, in_pod("", static_pod)},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + static_pod + ".slice/cri-containerd-" +
             id + ".scope",
         in_pod("containerd", static_pod)},
        {burstable + ".slice:cri-containerd:" + id, in_pod("containerd")},
        {"/system.slice/containerd.service/kubepods-besteffort-pod" + pod_unit + ".slice:cri-containerd:" + id,
         with_unit(in_pod("containerd"), "containerd.service")},
        {"/system.slice/crio.service/kubepods-pod" + pod_unit + ".slice:crio:" + id,
         with_unit(in_pod("cri-o"), "crio.service")},
        {burstable + ".slice", {.pod_uid = pod}},
        {"/kubepods/burstable/pod" + pod, {.pod_uid = pod}},
    });
}

TEST_CASE("containers in containers", "[cgroup]")
{
    const std::string kind = "/system.slice/docker-" + node + ".scope";
    check({
        {kind +
             "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-"
             "besteffort-pod" +
             pod_unit + ".slice/cri-containerd-" + id + ".scope",
         with_node(in_pod("containerd"))},
        {kind + "/kubelet/kubepods/besteffort/pod" + pod + "/" + id, with_node(in_pod(""))},
        {"/docker/" + node + "/kubelet/kubepods/pod" + pod + "/" + id, with_node(in_pod(""))},
        // k3d and minikube
        {"/docker/" + node + "/kubepods/burstable/pod" + pod + "/" + id, with_node(in_pod(""))},
        {kind + "/kubepods.slice/kubepods-pod" + pod_unit + ".slice/docker-" + id + ".scope",
         with_node(in_pod("docker"))},
        {kind + "/kubepods/pod" + pod + "/" + id,
         {.runtime = "docker", .container_id = node},
         {.uid = {}, .nodes = false}},
        {kind + "/kubepods.slice:cri-containerd:" + id, {.runtime = "docker", .container_id = node}},
        // Cgroups created inside of a container belong to that container.
        {"/docker/" + id + "/docker/" + middle, container("docker")},
        {"/docker/" + id + "/docker/" + middle + "/docker/" + node, container("docker")},
        {"/docker/" + id + "/a/kubepods/pod" + pod + "/" + middle, container("docker")},
        {"/docker/" + id + "/kubepods/" + middle, container("docker")},
        {"/docker/" + id + "/pod" + pod + "/" + middle, container("docker")},
        {"/kubepods/pod" + pod + "/" + id + "/kubepods/pod" + other_pod + "/" + middle, in_pod("")},
        {"/kubepods/pod" + pod + "/pod" + other_pod + "/" + id, in_pod("")},
        {"/docker/" + id + "/user.slice/user-1000.slice/session-2.scope", container("docker")},
        {"/docker/" + id + "/slurm/uid_1000/job_7/step_0", container("docker")},
        // For a system container of sysbox, the owner is that container, whatever runs inside it.
        {"/docker/" + id + "/syscont-cgroup-root/init.scope", container("docker")},
        {"/docker/" + id + "/syscont-cgroup-root/docker/" + middle, container("docker")},
        {"/kubepods/pod" + pod + "/crio-" + id + "/syscont-cgroup-root/kubepods/pod" + other_pod + "/" + middle,
         in_pod("cri-o")},
    });
}

TEST_CASE("paths in a cgroup namespace", "[cgroup]")
{
    check({
        {"/../../pod" + pod + "/" + id, in_pod("")},
        {"/../cri-containerd-" + id + ".scope", container("containerd")},
        {"/../" + id, container("")},
        {"../../kubepods-pod" + pod_unit + ".slice/crio-" + id + ".scope", in_pod("cri-o")},
        {"/", {}},
        {"/..", {}},
        {"", {}},
    });
}

TEST_CASE("Garden, Mesos and ECS", "[cgroup]")
{
    const std::string task = "0123456789abcdef0123456789abcdef";
    check({
        {"/garden/" + garden, {.container_id = garden}},
        {"/system.slice/garden.service/garden/" + garden, {.container_id = garden, .unit = "garden.service"}},
        {"/mesos/" + garden, {.container_id = garden}},
        {"/ecs/" + garden + "/" + id, container("")}, // the task's id is not taken for a Kubernetes node's
        {"/ecs/cluster/" + task + "/" + id, container("")},
        {"/ecs/" + task + "/" + task + "-2532581093", {.container_id = task + "-2532581093"}},
        {"/ecs/" + task + "/" + task + "-" + std::string(21, '1'), {}},
        {"/ecs/" + task + "/" + task + "-", {}},
        {"/ecstasks.slice/ecstasks-" + task + ".slice/docker-" + id + ".scope", container("docker")},
    });
}

TEST_CASE("systemd units and users", "[cgroup]")
{
    check({
        {"/system.slice/nvidia-dcgm.service", {.unit = "nvidia-dcgm.service"}},
        {"/system.slice/system-gpu\\x2dworker.slice/gpu\\x2dworker@a\\x2db.service",
         {.unit = "gpu\\x2dworker@a\\x2db.service"}},
        {"/user.slice/user-1000.slice/session-3.scope", {.unit = "session-3.scope", .uid = 1000}},
        {"/user.slice/user-0.slice/session-c1.scope", {.unit = "session-c1.scope", .uid = 0}},
        {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope",
         {.unit = "vte-spawn-1.scope", .uid = 1000, .named_by_user = true}},
        {"/user.slice/user-0.slice/user@0.service/app.slice/a.service", {.unit = "a.service", .uid = 0}},
        // Users choose the names of cgroups below their own service; systemd chooses the name of the slice above it.
        {"/user.slice/user-1000.slice/user@1000.service/user-0.slice", {.unit = "user@1000.service", .uid = 1000}},
        {"/user.slice/user-4294967295.slice", {.uid = 4294967295}},
        {"/user.slice/user-4294967296.slice", {}},
        {"/user.slice/user-.slice", {}},
        {"/user.slice/user--1.slice", {}},
        {"/user.slice/user-1000x.slice", {}},
        {"/init.scope", {.unit = "init.scope"}},
        {"/system.slice/.service", {}},
        {"/system.slice/a.service/payload", {.unit = "a.service"}},
        {"/machine.slice/machine-vm1.scope", {.unit = "machine-vm1.scope"}},
        {"/system.slice/ssh.socket", {}},
    });
}

TEST_CASE("Slurm jobs", "[cgroup]")
{
    const std::string v2 = "/system.slice/slurmstepd.scope";
    check({
        {v2 + "/job_1234/step_0/user/task_0", in_job("slurmstepd.scope", "1234", "0")},
        {v2 + "/job_1234/step_batch/user/task_0", in_job("slurmstepd.scope", "1234", "batch")},
        {v2 + "/job_1234/step_extern/user/task_special", in_job("slurmstepd.scope", "1234", "extern")},
        {v2 + "/job_1234/step_interactive/slurm", in_job("slurmstepd.scope", "1234", "interactive")},
        {"/system.slice/node01_slurmstepd.scope/job_1234/step_7/user/task_3",
         in_job("node01_slurmstepd.scope", "1234", "7")},
        {v2 + "/job_1234", in_job("slurmstepd.scope", "1234", "")},
        {v2 + "/job_1234_7/step_1+2", in_job("slurmstepd.scope", "1234_7", "1+2")},
        {v2 + "/system", in_job("slurmstepd.scope", "", "")},
        {v2 + "/s5K1KX0M7QR2ZT/step_0/user/task_0", in_job("slurmstepd.scope", "s5K1KX0M7QR2ZT", "0")},
        {"/system.slice/node01_slurmstepd.scope/s0000000000001/step_extern",
         in_job("node01_slurmstepd.scope", "s0000000000001", "extern")},
        {"/slurm/uid_1000/job_1234/step_0/task_0", {.uid = 1000, .slurm_job = "1234", .slurm_step = "0"}},
        {"/slurm_node01/uid_1000/job_99+1/step_batch", {.uid = 1000, .slurm_job = "99+1", .slurm_step = "batch"}},
        // Names of jobs and steps are valid only below Slurm's cgroup, and only in the order job, step.
        {"/job_1234/step_0", {}},
        {"/uid_1000/job_1234", {}},
        {v2 + "/step_0/job_1234", in_job("slurmstepd.scope", "1234", "")},
        {v2 + "/job_/step_0", in_job("slurmstepd.scope", "", "")},
        {v2 + "/job_abc", in_job("slurmstepd.scope", "", "")},
        {"/s5K1KX0M7QR2ZT/step_0", {}},
        {v2 + "/s5K1KX0M7QR2Z/step_0", in_job("slurmstepd.scope", "", "")},   // too short
        {v2 + "/s5K1KX0M7QR2ZTT/step_0", in_job("slurmstepd.scope", "", "")}, // too long
        {v2 + "/s5K1KX0M7QR2ZU/step_0", in_job("slurmstepd.scope", "", "")},  // an invalid digit
        {v2 + "/sG000000000000/step_0", in_job("slurmstepd.scope", "", "")},  // more than 64 bits
        {v2 + "/S5K1KX0M7QR2ZT/step_0", in_job("slurmstepd.scope", "", "")},
        {v2 + "/job_1;rm", in_job("slurmstepd.scope", "", "")},
        {v2 + "/job_1/step_\x1b[2J", in_job("slurmstepd.scope", "1", "")},
    });
}

TEST_CASE("names below a user's cgroup belong to that user", "[cgroup]")
{
    const std::string slice = "/user.slice/user-1000.slice", manager = slice + "/user@1000.service";
    const std::string in_kubepods =
        "/kubepods.slice/kubepods-pod" + pod_unit + ".slice/cri-containerd-" + id + ".scope";
    const CgroupOwner its_container = with_user(container("containerd"), "user@1000.service", 1000);
    check({
        {manager + in_kubepods, its_container},
        {manager + in_kubepods, its_container, {manager.size(), 1000}},
        {manager + "/kubepods/pod" + pod, {.unit = "user@1000.service", .uid = 1000}},
        {manager + "/slurmstepd.scope/job_1/step_0", {.unit = "slurmstepd.scope", .uid = 1000, .named_by_user = true}},
        {manager + "/docker-" + node + ".scope/kubelet/kubepods/pod" + pod + "/" + id, // the tool kind, run by a user
         with_user({.runtime = "docker", .container_id = node}, "user@1000.service", 1000)},
        {"/user.slice/user-1000.slice/a/user@1000.service/b.service", // root may have moved user@1000.service
         {.unit = "b.service", .uid = 1000, .named_by_user = true}},
        {"/user@1000.service/kubepods/pod" + pod + "/" + id, with_unit(in_pod(""), "user@1000.service")},

        // A service whose cgroup systemd has delegated to its user.
        {"/system.slice/train.service" + in_kubepods,
         with_user(container("containerd"), "train.service", 999),
         {27, 999}},
        {"/system.slice/train.service/libpod-payload-" + id,
         with_user(container("podman"), "train.service", 999),
         {27, 999}},
        {"/system.slice/train.service/nvidia-dcgm.service", {.unit = "train.service"}, {27, 999}},
        {"/system.slice/train.service" + in_kubepods, {.unit = "train.service"}, {27, std::nullopt}},
        {"/system.slice/train.service", {.unit = "train.service"}, {27, 999}},
        {"/a/" + id, {.container_id = id, .uid = 999, .named_by_user = true}, {0, 999}},
        {"/a" + in_kubepods, in_pod("containerd"), {2 + in_kubepods.size(), 999}},

        // Cgroups created inside of a container, a pod or a job belong to that container, pod or job.
        {"/kubepods/pod" + pod + "/" + middle, {.pod_uid = pod}, {13 + pod.size(), 999}},
        {"/docker/" + id + "/kubepods/pod" + pod + "/" + middle, container("docker"), {8 + id.size(), 999}},
        {"/docker/" + id + "/kubepods/pod" + pod + "/" + middle, container("docker"), {17 + id.size(), 999}},
        {"/system.slice/slurmstepd.scope/job_7/docker-" + id + ".scope",
         in_job("slurmstepd.scope", "7", ""),
         {36, 999}},
    });
}

TEST_CASE("names that only look like containers", "[cgroup]")
{
    std::string upper = id;
    upper.back() = 'C';
    std::string not_hex = id;
    not_hex.back() = 'g';
    check({
        {"/system.slice/crio-conmon-" + id + ".scope", {.unit = "crio-conmon-" + id + ".scope"}},
        {"/machine.slice/libpod-conmon-" + id + ".scope", {.unit = "libpod-conmon-" + id + ".scope"}},
        {"/libpod_parent/libpod-conmon-" + id, {}},
        {"/libpod_parent/conmon", {}},
        {"/kubepods.slice/kubepods-pod" + pod_unit + ".slice/crio-conmon-" + id + ".scope",
         {.pod_uid = pod, .unit = "crio-conmon-" + id + ".scope"}},
        {"/system.slice/var-lib-docker-overlay2-" + id + "-merged.mount", {}},
        {"/system.slice/var-lib-containers-" + id + ".mount", {}},
        {"/system.slice/" + id + ".mount", {}},
        {"/system.slice/docker-" + id + ".service", {.unit = "docker-" + id + ".service"}},
        {"/system.slice/docker-" + id + ".slice", {}},
        {"/docker/" + id.substr(1), {}},
        {"/docker/" + id + "0", {}},
        {"/system.slice/docker-" + id + "0.scope", {.unit = "docker-" + id + "0.scope"}},
        {"/system.slice/docker-" + id.substr(1) + ".scope", {.unit = "docker-" + id.substr(1) + ".scope"}},
        {"/system.slice/docker" + id + ".scope", {.unit = "docker" + id + ".scope"}},
        {"/docker/" + upper, {}},
        {"/docker/" + not_hex, {}},
        {"/docker/" + id + "\n", {}},
        {"/docker/unknown-" + id, {}},
        {"/x:" + id, {}},
        {"/a:b:" + id.substr(2), {}},
        {"/garden/" + garden.substr(1), {}},
        {"/garden/" + pod_unit, {}},
        {"/kubepods/pod" + pod.substr(1) + "/x", {}},
        {"/kubepods/pod" + pod + "0/x", {}},
        {"/kubepods/pod../x", {}},
        {"/kubepods.slice/kubepods-pod" + static_pod + "0.slice", {}},
        {"/docker/" + std::string(300, 'x') + "-" + id, {}},
        {std::string("/docker/\0\xff/", 10) + std::string(256, 's') + ".service", {}},
    });
}

TEST_CASE("a path of megabytes takes linear time", "[cgroup]")
{
    const std::clock_t start = std::clock();
    std::string deep;
    while (deep.size() < (4 << 20))
        deep += "/docker-" + node + ".scope/user-1.slice/kubepods-pod" + pod_unit + ".slice";
    CHECK(parse_cgroup_path(deep + "/docker/" + id) == CgroupOwner{.runtime = "docker", .container_id = node});
    CHECK(parse_cgroup_path(std::string(4 << 20, '/') + "docker/" + id) == container("docker"));
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
