// SPDX-License-Identifier: Apache-2.0
// THE table of container runtimes. A new one is a row, and a reader where no other's reads what it writes.
#include "who/container_runtimes.hpp"

namespace gpusnoop {

constinit const std::array<ContainerRuntime, 5> container_runtimes = {{
    {.name = "containerd",
     .prefixes = {"cri-containerd", "nerdctl"},
     .parents = {"default", "k8s.io"}, // namespaces of ctr and nerdctl, and of CRI
     .folders = {"run/containerd/io.containerd.runtime.v2.task/*",
                 "run/k3s/containerd/io.containerd.runtime.v2.task/*", // RKE2 too
                 "var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/*",
                 "run/k0s/containerd/io.containerd.runtime.v2.task/*"},
     .record = "config.json",
     .read = read_containerd_task},
    {.name = "cri-o", .prefixes = {"crio", "cri-o"}}, // what it writes is in the storage below
    {.name = "podman",
     .prefixes = {"libpod", "libpod-payload"},
     .folders = {"run/containers/storage/overlay-containers",           // where CRI-O has the configurations
                 "var/lib/containers/storage/overlay-containers",       // where podman has them
                 ".local/share/containers/storage/overlay-containers"}, // in a home
     .in_homes = true,
     .record = "userdata/config.json",
     .read = read_oci_config,
     .each_listed = each_stored},
    {.name = "", // the kubelet, of every runtime
     .folders = {"var/log/containers"},
     .each_listed = each_log_link},
    {.name = "docker",
     .prefixes = {"docker"},
     .parents = {"docker"}, // the default one
     .folders = {"var/lib/docker/containers", "var/snap/docker/common/var-lib-docker/containers",
                 ".local/share/docker/containers"}, // the last one is in a home
     .more_folders = docker_data_root,
     .in_homes = true,
     .record = "config.v2.json",
     .read = read_docker_config},
}};

} // namespace gpusnoop
