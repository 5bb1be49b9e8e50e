// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/who/container_host.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <thread>

using namespace gpusnoop;
using namespace std::chrono_literals;
using namespace gpusnoop::container_host;

namespace {

using Named = Containers::Named;

const std::string static_uid = "9b8a7c6d5e4f30211203f4e5d6c7a8b9";

json cri_sandbox_annotations()
{
    return {{"io.kubernetes.cri.container-type", "sandbox"},
            {"io.kubernetes.cri.podsandbox.image-name", "registry.k8s.io/pause:3.9"},
            {"io.kubernetes.cri.sandbox-cpu-shares", "1024"},
            {"io.kubernetes.cri.sandbox-id", pause_id},
            {"io.kubernetes.cri.sandbox-name", "trainer-0"},
            {"io.kubernetes.cri.sandbox-namespace", "ml-team"},
            {"io.kubernetes.cri.sandbox-uid", pod_uid}};
}

json crio_annotations()
{
    return pod_labels() + json{{"io.container.manager", "cri-o"},
                               {"io.kubernetes.cri-o.ContainerID", id},
                               {"io.kubernetes.cri-o.ContainerType", "container"},
                               {"io.kubernetes.cri-o.ImageName", "quay.io/ml/trainer:7"},
                               {"io.kubernetes.cri-o.Metadata", R"({"name":"trainer"})"},
                               {"io.kubernetes.cri-o.Name", "k8s_trainer_trainer-0_ml-team_" + pod_uid + "_0"},
                               {"io.kubernetes.cri-o.SandboxID", pause_id}};
}

json stored_entry(const std::string& container, const std::string& name, const std::string& image)
{
    return {{"id", container},
            {"names", {name}},
            {"image", other_id},
            {"layer", pause_id},
            {"metadata", json{{"image-name", image}, {"name", name}, {"created-at", 1711141194}}.dump()},
            {"created", "2024-03-22T20:59:54.545266929Z"},
            {"flags", {{"MountLabel", ""}, {"ProcessLabel", ""}}}};
}

ContainerNames trainer(std::string runtime, std::string image)
{
    return {"trainer", "trainer-0", "ml-team", pod_uid, std::move(runtime), std::move(image), false};
}

ContainerNames sandbox(std::string runtime, std::string image)
{
    return {"", "trainer-0", "ml-team", pod_uid, std::move(runtime), std::move(image), true};
}

const std::string log_link = "var/log/containers/trainer-0_ml-team_trainer-" + id + ".log";
const std::string passwd = "root:x:0:0:root:/root:/bin/bash\n"
                           "broken line\n"
                           "alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n"
                           "bob:x:1001:1001::/home/bob:/bin/sh";

} // namespace

TEST_CASE("a container of containerd in a pod", "[containers]")
{
    for (const char* state :
         {"run/containerd", "run/k3s/containerd", "var/snap/microk8s/common/run/containerd", "run/k0s/containerd"}) {
        INFO(state);
        const Host host;
        host.file(task(id, state), oci_config(cri_annotations()));
        host.file(task(pause_id, state), oci_config(cri_sandbox_annotations()));
        check(host.find(id), trainer("containerd", "nvcr.io/nvidia/pytorch:24.05-py3"));
        json annotations = cri_annotations(); // plus an annotation of the pod that containerd passes on
        annotations["example.com/team"] = "speech";
        host.file(task(id, state), oci_config(annotations));
        CHECK(host.find(id).labels == std::vector<std::string>{"example.com/team=speech"});
        check(host.find(pause_id), sandbox("containerd", "registry.k8s.io/pause:3.9"));
        check(host.find(other_id), {});
    }
}

TEST_CASE("containers of nerdctl, ctr and docker's own containerd", "[containers]")
{
    const Host host;
    host.file(task(id, "run/containerd", "default"),
              oci_config({{"nerdctl/name", "tuner"}, {"nerdctl/namespace", "default"}}));
    host.file(task(other_id, "run/containerd", "moby"), oci_config(json::object()));
    host.file(task(pause_id, "run/containerd", "ci"), oci_config(json::object()));
    check(host.find(id), {.container = "tuner", .runtime = "containerd"});
    check(host.find(other_id), {});
    check(host.find(pause_id), {.runtime = "containerd"});
    CHECK(host.containers().find_named("tuner") == std::set<Named>{{id, {}}});
}

TEST_CASE("a container of CRI-O", "[containers]")
{
    const Host host;
    host.file(stored(id), oci_config(crio_annotations()));
    host.file(stored(pause_id), oci_config(pod_labels() + json{{"io.container.manager", "cri-o"},
                                                               {"io.kubernetes.container.name", "POD"},
                                                               {"io.kubernetes.cri-o.ContainerType", "sandbox"}}));
    check(host.find(id), trainer("cri-o", "quay.io/ml/trainer:7"));
    check(host.find(pause_id), sandbox("cri-o", ""));

    SECTION("the pod's labels are in the record of its sandbox")
    {
        const json labels = {{"team", "speech"}, {"io.kubernetes.pod.name", "trainer-0"}};
        host.file(stored(pause_id), oci_config({{"io.container.manager", "cri-o"},
                                                {"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                                {"io.kubernetes.cri-o.Labels", labels.dump()}}));
        CHECK(host.find(id).labels == std::vector<std::string>{"team=speech"});
        CHECK(host.find(id).container == "trainer");
    }
    SECTION("labels only in one annotation")
    {
        const json labels =
            pod_labels() + json{{"io.kubernetes.cri-o.Labels", R"({"io.kubernetes.pod.name":"deeper"})"}};
        host.file(stored(id),
                  oci_config({{"io.container.manager", "cri-o"}, {"io.kubernetes.cri-o.Labels", labels.dump()}}));
        check(host.find(id), trainer("cri-o", ""));
    }
    SECTION("only CRI-O's own name")
    {
        host.file(stored(id),
                  oci_config({{"io.container.manager", "cri-o"},
                              {"io.kubernetes.cri-o.Name", "k8s_trainer_trainer-0_ml-team_" + pod_uid + "_12"}}));
        check(host.find(id), trainer("cri-o", ""));
    }
    SECTION("only the list of containers in the storage folder")
    {
        std::filesystem::remove_all(host.file("run"));
        host.file("var/lib/containers/storage/overlay-containers/containers.json",
                  json{stored_entry(pause_id, "k8s_POD_trainer-0_ml-team_" + pod_uid + "_0", "pause:3.9"),
                       stored_entry(other_id, "k8s_trainer-0_ml-team_" + pod_uid + "_1", "pause:3.9"),
                       stored_entry(id, "k8s_trainer_trainer-0_ml-team_" + pod_uid + "_0", "quay.io/ml/trainer:7")}
                      .dump());
        check(host.find(id), trainer("cri-o", "quay.io/ml/trainer:7"));
        check(host.find(pause_id), sandbox("cri-o", "pause:3.9"));
        check(host.find(other_id), sandbox("cri-o", "pause:3.9"));
    }
}

TEST_CASE("names are read from the kubelet's log files", "[containers]")
{
    const Host host;
    SECTION("a link, whatever its target is")
    {
        host.link(log_link, "/nowhere");
        check(host.find(id), {.container = "trainer", .pod = "trainer-0", .pod_namespace = "ml-team"});
    }
    SECTION("dashes in every name")
    {
        host.link("var/log/containers/a-b-c_d-e_f-g-" + id + ".log", "/nowhere");
        check(host.find(id), {.container = "f-g", .pod = "a-b-c", .pod_namespace = "d-e"});
    }
    SECTION("other file names")
    {
        for (const std::string& name : {"trainer-0_ml-team_trainer-" + id, "trainer-0_ml-team-" + id + ".log",
                                        "trainer-" + id + ".log", "a_b-c_" + id + ".log", "-" + id + ".log"})
            host.link("var/log/containers/" + name, "/nowhere");
        check(host.find(id), {});
    }
    SECTION("the folder of a pod")
    {
        host.folder("var/log/pods/ml-team_trainer-0_" + pod_uid + "/trainer");
        host.folder("var/log/pods/kube-system_etcd-n1_" + static_uid + "/etcd");
        host.folder("var/log/pods/kube-system_etcd-n1_" + static_uid + "/init");
        host.folder("var/log/pods/kube-system_" + pod_uid);
        check(host.containers().find({.container_id = id, .pod_uid = pod_uid}), trainer("", ""));
        check(host.containers().find({.pod_uid = pod_uid}),
              {.pod = "trainer-0", .pod_namespace = "ml-team", .pod_uid = pod_uid});
        check(host.containers().find({.runtime = "containerd", .container_id = id, .pod_uid = static_uid}),
              {.pod = "etcd-n1", .pod_namespace = "kube-system", .pod_uid = static_uid, .runtime = "containerd"});
    }
    SECTION("a sandbox has no container name")
    {
        host.folder("var/log/pods/ml-team_trainer-0_" + pod_uid + "/trainer");
        host.file(task(pause_id), oci_config({{"io.kubernetes.cri.container-type", "sandbox"}}));
        check(host.containers().find({.container_id = pause_id, .pod_uid = pod_uid}), sandbox("containerd", ""));
    }
}

TEST_CASE("a container of docker", "[containers]")
{
    const Host host;
    const std::string root =
        GENERATE_COPY(as<std::string>{}, "var/lib/docker", "var/snap/docker/common/var-lib-docker");
    SECTION("on its own")
    {
        host.file(docker(id, root), docker_config("/brave_turing", {{"com.docker.compose.service", "web"}}));
        check(host.find(id), {.container = "brave_turing", .runtime = "docker", .image = "pytorch:2.3"});
        CHECK(host.find(id).labels == std::vector<std::string>{"com.docker.compose.service=web"});
        CHECK(host.containers().find_named("brave_turing") == std::set<Named>{{id, {}}});
        CHECK(host.containers().find_named("/brave_turing").empty());
        CHECK(host.containers().find_named("brave").empty());
        CHECK(host.containers().find_named("").empty());
    }
    SECTION("in a pod")
    {
        const json labels = pod_labels() + json{{"io.kubernetes.docker.type", "container"}};
        const json pause_labels =
            pod_labels() + json{{"io.kubernetes.container.name", "POD"}, {"io.kubernetes.docker.type", "podsandbox"}};
        host.file(docker(id, root), docker_config("/k8s_trainer_trainer-0_ml-team_" + pod_uid + "_0", labels));
        host.file(docker(pause_id, root),
                  docker_config("/k8s_POD_trainer-0_ml-team_" + pod_uid + "_0", pause_labels, "pause:3.9"));
        check(host.find(id), trainer("docker", "pytorch:2.3"));
        check(host.find(pause_id), sandbox("docker", "pause:3.9"));
        const auto pod = host.containers().find_pod("ml-team", "trainer-0");
        CHECK(pod.uids == std::set<std::string>{pod_uid});
        CHECK(pod.container_ids == std::set<std::string>{id, pause_id});
    }
    SECTION("names with underscores that are not from a kubelet")
    {
        host.file(docker(id, root), docker_config("/k8s_my_test_box", json::object()));
        check(host.find(id), {.container = "k8s_my_test_box", .runtime = "docker", .image = "pytorch:2.3"});
        host.file(docker(id, root), docker_config("/not_k8s_but_many_parts_here", nullptr));
        check(host.find(id), {.container = "not_k8s_but_many_parts_here", .runtime = "docker", .image = "pytorch:2.3"});
    }
}

TEST_CASE("a late answer about a user's container is not used for root's container with the same id", "[containers]")
{
    const Host host;
    host.file(docker(id), docker_config("/of_root", nullptr));
    WaitBudget waits;
    waits.use(0, 0, 1h, WaitBudget::Clock::now()); // uses up the time that find() may wait
    ContainerLookup lookup(host.path(), &waits);
    const auto answer_to = [&](const CgroupOwner& owner) {
        std::optional<ContainerNames> names;
        for (int i = 0; i < 2000 && !(names = lookup.find(owner)); i++)
            std::this_thread::sleep_for(5ms);
        return names;
    };
    CHECK_FALSE(lookup.find({.container_id = id, .uid = 1000, .named_by_user = true}));
    REQUIRE(answer_to({.container_id = other_id})); // answers arrive in order, so the first one has arrived, too
    const auto names = answer_to({.container_id = id});
    REQUIRE(names);
    CHECK(names->container == "of_root");
}

TEST_CASE("docker's data in another folder", "[containers]")
{
    const Host host;
    SECTION("set in the daemon's configuration")
    {
        host.file("etc/docker/daemon.json", R"({"debug": true, "data-root": "/data/docker"})");
        host.file(docker(id, "data/docker"), docker_config("/web", nullptr));
    }
    SECTION("behind a link, which is relative to the host's root")
    {
        host.link("var/lib/docker", "/data/docker");
        host.file(docker(id, "data/docker"), docker_config("/web", nullptr));
    }
    check(host.find(id), {.container = "web", .runtime = "docker", .image = "pytorch:2.3"});
}

TEST_CASE("a container of podman", "[containers]")
{
    const Host host;
    const std::string storage = "var/lib/containers/storage";
    const std::string list = GENERATE_COPY(as<std::string>{}, "containers.json", "volatile-containers.json");
    host.file(storage + "/overlay-containers/" + list,
              json{stored_entry(other_id, "other", "docker.io/library/busybox:1"),
                   stored_entry(id, "tuner", "docker.io/pytorch/pytorch:2.3"),
                   {{"id", pause_id}, {"names", nullptr}}}
                  .dump());
    check(host.find(pause_id), {.runtime = "podman"});
    check(host.find(id), {.container = "tuner", .runtime = "podman", .image = "docker.io/pytorch/pytorch:2.3"});
    host.file(stored(id, storage), oci_config({{"io.container.manager", "libpod"}}));
    check(host.find(id), {.container = "tuner", .runtime = "podman", .image = "docker.io/pytorch/pytorch:2.3"});
    CHECK(host.containers().find_named("tuner") == std::set<Named>{{id, {}}});
    CHECK(host.containers().find_named("other") == std::set<Named>{{other_id, {}}});
}

TEST_CASE("rootless containers are recorded in the home of their user", "[containers]")
{
    const Host host;
    const std::string alice = "home/alice/.local/share/";
    host.file("etc/passwd", passwd);
    host.folder("run/user/1000");
    host.file(alice + "containers/storage/overlay-containers/containers.json",
              json{stored_entry(id, "tuner", "busybox:1")}.dump());
    host.file(docker(other_id, alice + "docker"), docker_config("/web", nullptr));
    const Containers containers = host.containers();

    const auto find = [&](const std::string& container, uint32_t uid) {
        return containers.find({.container_id = container, .uid = uid, .named_by_user = true});
    };

    check(find(id, 1000), {.container = "tuner", .runtime = "podman", .image = "busybox:1"});
    check(find(other_id, 1000), {.container = "web", .runtime = "docker", .image = "pytorch:2.3"});
    check(find(id, 1001), {}); // user 1001 is bob, whose home folder has no containers
    check(find(id, 1002), {});
    check(containers.find({.container_id = id, .uid = 1000}), {}); // container of root
    CHECK(containers.find_named("tuner") == std::set<Named>{{id, 1000}});
    CHECK(containers.find_named("web") == std::set<Named>{{other_id, 1000}});

    SECTION("the home folder itself may be a link")
    {
        std::filesystem::rename(host.file("home"), host.file("homes"));
        host.link("home", "/homes");
        check(find(other_id, 1000), {.container = "web", .runtime = "docker", .image = "pytorch:2.3"});
    }
    SECTION("links inside of a home are not followed")
    {
        const std::string target = GENERATE_COPY(as<std::string>{}, "../../../../../secret", "/secret", "docker2");
        host.file(docker(other_id, "secret"), docker_config("/secret", nullptr));
        host.file(docker(other_id, "home/alice/secret"), docker_config("/secret", nullptr));
        host.file(docker(other_id, alice + "docker2"), docker_config("/secret", nullptr));
        std::filesystem::remove_all(host.file(alice + "docker"));
        host.link(alice + "docker", target);
        check(find(other_id, 1000), {});
        CHECK(containers.find_named("secret").empty());
    }
    SECTION("records in a home cannot name a pod, and do not affect root's containers")
    {
        host.file(docker(other_id, alice + "docker"), docker_config("/web", pod_labels() + json{{"team", "a"}}));
        const ContainerNames got = find(other_id, 1000);
        check(got, {.container = "trainer", .runtime = "docker", .image = "pytorch:2.3"});
        CHECK(got.labels.empty());
        CHECK(containers.find_pod("ml-team", "trainer-0").uids.empty());
        CHECK(containers.find_pod("ml-team", "trainer-0").container_ids.empty());
        host.file(docker(other_id), docker_config("/train-0", nullptr));
        check(find(other_id, 1000), {.container = "trainer", .runtime = "docker", .image = "pytorch:2.3"});
        CHECK(containers.find({.container_id = other_id}).container == "train-0");
        CHECK(containers.find({.container_id = other_id, .node_id = pause_id}).container.empty());
    }
    SECTION("homes of users without a session are not searched")
    {
        std::filesystem::remove_all(host.file("run/user/1000"));
        CHECK(containers.find_named("tuner").empty());
    }
}

TEST_CASE("later sources fill fields that earlier ones left empty", "[containers]")
{
    const Host host;
    host.file(task(id), oci_config({{"io.kubernetes.cri.container-type", "container"},
                                    {"io.kubernetes.cri.sandbox-name", "trainer-0"}}));
    host.link("var/log/containers/not-me_ml-team_trainer-" + id + ".log", "/nowhere");
    host.file(docker(id), docker_config("/not-me", nullptr, "image-of-docker"));
    check(host.containers().find({.runtime = "cri-o", .container_id = id, .pod_uid = pod_uid}),
          trainer("containerd", "image-of-docker"));
}

TEST_CASE("the ids of a pod", "[containers]")
{
    const Host host;
    const std::string second_uid = "ffffffff-0000-1111-2222-333333333333";
    const std::string crio_id(64, 'c');
    const std::string linked_id(64, 'd');
    host.file(task(id), oci_config(cri_annotations()));
    host.file(task(pause_id, "run/k3s/containerd"), oci_config(cri_sandbox_annotations()));
    host.file(stored(crio_id), oci_config(crio_annotations()));
    host.link("var/log/containers/trainer-0_ml-team_sidecar-" + linked_id + ".log", "/nowhere");
    host.link("var/log/containers/trainer-0_ml-team_trainer-with-a-name-cut-sho.log", "/nowhere");
    host.link("var/log/containers/trainer-0_other-team_trainer-" + std::string(64, 'e') + ".log", "/nowhere");
    host.link("var/log/containers/trainer-00_ml-team_trainer-" + std::string(64, 'f') + ".log", "/nowhere");
    host.folder("var/log/pods/ml-team_trainer-0_" + second_uid);
    host.folder("var/log/pods/ml-team_trainer-0_not an id");
    host.folder("var/log/pods/ml-team_trainer-1_" + static_uid);

    host.file(docker(std::string(64, 'a')), docker_config("/in-no-pod", nullptr));

    const auto pod = host.containers().find_pod("ml-team", "trainer-0");
    CHECK(pod.uids == std::set<std::string>{pod_uid, second_uid});
    CHECK(pod.container_ids == std::set<std::string>{id, pause_id, crio_id, linked_id});

    for (const auto& [name_space, name] : {std::pair("ml-team", "trainer"), std::pair("default", "trainer-0"),
                                           std::pair("", ""), std::pair("ml-team", ""), std::pair("", "trainer-0")}) {
        const auto none = host.containers().find_pod(name_space, name);
        CHECK(none.uids.empty());
        CHECK(none.container_ids.empty());
    }
}

TEST_CASE("a host without containers, and a missing root", "[containers]")
{
    const Host host;
    check(host.containers().find({.runtime = "docker", .container_id = id, .pod_uid = pod_uid}),
          {.pod_uid = pod_uid, .runtime = "docker"});
    check(host.containers().find({}), {});
    CHECK(host.containers().find_named("web").empty());
    CHECK(host.containers().find_pod("a", "b").container_ids.empty());
    const Containers nowhere("/nonexistent/root");
    check(nowhere.find({.container_id = id, .uid = 0}), {});
    CHECK(nowhere.find_named("web").empty());
}

TEST_CASE("GPUs in a container's configuration", "[containers]")
{
    Host host;
    json config = json::parse(oci_config(cri_annotations()));
    CHECK((host.file(task(id), config.dump()), host.find(id).visible_devices) == "all");
    config["process"]["env"] = {"A=NVIDIA_VISIBLE_DEVICES=1", "NVIDIA_VISIBLE_DEVICES=GPU-1b2c,2",
                                "NVIDIA_VISIBLE_DEVICES=3"};
    config["linux"]["devices"] = {{{"path", "/dev/nvidia3"}},
                                  {{"path", "/dev/nvidiactl"}},
                                  {{"path", "/dev/nvidia12"}},
                                  {{"path", "/dev/nvidia99999999999"}},
                                  {{"path", "/dev/nvidia-caps/nvidia-cap21"}},
                                  {{"path", 7}}};
    host.file(task(id), config.dump());
    CHECK(host.find(id).visible_devices == "GPU-1b2c,2");
    CHECK(host.find(id).gpu_files == std::vector<uint32_t>{3, 12});
    CHECK(host.find(id).cap_files == std::vector<uint32_t>{21});
    json of_docker = json::parse(docker_config("/trainer", json::object()));
    of_docker["Config"]["Env"] = {"NVIDIA_VISIBLE_DEVICES=0"};
    Host other;
    other.file(docker(id), of_docker.dump());
    CHECK(other.find(id).visible_devices == "0");
}
