// SPDX-License-Identifier: Apache-2.0
// A fake host in a temporary folder, with the records that runtimes keep about containers.
#pragma once

#include "who/containers.hpp"

#include "tests/unit/base/folder.hpp"

#include <nlohmann/json.hpp>

// Initializers of owners and of expected results set only the fields that a test needs; other fields are empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace gpusnoop::container_host {

using nlohmann::json;

inline const std::string id = "3f2a91c07bd84e6655d0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abc";
inline const std::string other_id = "b7c1d2e3f40516273849506a7b8c9daebfc0d1e2f30415263748596a7b8c9d0e";
inline const std::string pause_id = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline const std::string pod_uid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

// The root of a fake host.
struct Host : Folder {
    Containers containers() const { return Containers(path()); }
    ContainerNames find(const std::string& container) const { return containers().find({.container_id = container}); }
};

inline std::string task(const std::string& container, const std::string& state = "run/containerd",
                        const std::string& name_space = "k8s.io")
{
    return state + "/io.containerd.runtime.v2.task/" + name_space + '/' + container + "/config.json";
}

inline std::string stored(const std::string& container, const std::string& storage = "run/containers/storage")
{
    return storage + "/overlay-containers/" + container + "/userdata/config.json";
}

inline std::string docker(const std::string& container, const std::string& root = "var/lib/docker")
{
    return root + "/containers/" + container + "/config.v2.json";
}

// Returns the parts of an OCI runtime's configuration that surround the annotations.
inline std::string oci_config(const json& annotations)
{
    return json{{"ociVersion", "1.1.0"},
                {"process",
                 {{"terminal", false},
                  {"user", {{"uid", 0}, {"additionalGids", {0, 10}}}},
                  {"args", {"python3", "train.py"}},
                  {"env", {"PATH=/usr/bin", "NVIDIA_VISIBLE_DEVICES=all"}},
                  {"oomScoreAdj", -997}}},
                {"root", {{"path", "rootfs"}}},
                {"hostname", "trainer-0"},
                {"mounts", {{{"destination", "/proc"}, {"type", "proc"}, {"options", {"nosuid"}}}}},
                {"annotations", annotations},
                {"linux", {{"cgroupsPath", "kubepods-pod.slice:cri-containerd:x"}, {"resources", json::object()}}}}
        .dump();
}

// Labels of a container in a pod, as the kubelet passes them to docker and CRI-O.
inline json pod_labels()
{
    return {{"io.kubernetes.container.name", "trainer"},
            {"io.kubernetes.pod.name", "trainer-0"},
            {"io.kubernetes.pod.namespace", "ml-team"},
            {"io.kubernetes.pod.uid", pod_uid}};
}

inline json operator+(json object, const json& more)
{
    object.update(more);
    return object;
}

inline json cri_annotations()
{
    return {{"io.kubernetes.cri.container-name", "trainer"},
            {"io.kubernetes.cri.container-type", "container"},
            {"io.kubernetes.cri.image-name", "nvcr.io/nvidia/pytorch:24.05-py3"},
            {"io.kubernetes.cri.sandbox-id", pause_id},
            {"io.kubernetes.cri.sandbox-name", "trainer-0"},
            {"io.kubernetes.cri.sandbox-namespace", "ml-team"},
            {"io.kubernetes.cri.sandbox-uid", pod_uid}};
}

inline std::string docker_config(const std::string& name, const json& labels, const std::string& image = "pytorch:2.3")
{
    return json{{"StreamConfig", json::object()},
                {"State", {{"Running", true}, {"Pid", 4711}, {"Error", ""}}},
                {"ID", id},
                {"Path", "python3"},
                {"Args", {"train.py"}},
                {"Config", {{"Hostname", "3f2a91c07bd8"}, {"Image", image}, {"Labels", labels}, {"Env", nullptr}}},
                {"Image", "sha256:" + other_id},
                {"Name", name},
                {"RestartCount", 0}}
        .dump();
}

inline void check(const ContainerNames& got, const ContainerNames& expected)
{
    CHECK(got.container == expected.container);
    CHECK(got.pod == expected.pod);
    CHECK(got.pod_namespace == expected.pod_namespace);
    CHECK(got.pod_uid == expected.pod_uid);
    CHECK(got.runtime == expected.runtime);
    CHECK(got.image == expected.image);
    CHECK(got.sandbox == expected.sandbox);
}

} // namespace gpusnoop::container_host
