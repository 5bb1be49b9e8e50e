// SPDX-License-Identifier: Apache-2.0
// containerd's folder of running tasks: STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json, gone at exit.
#include "container_sources.hpp"

#include <array>

namespace gpusnoop {

namespace {

constexpr std::array<const char*, 4> state_folders = {
    "run/containerd",
    "run/k3s/containerd", // RKE2 too
    "var/snap/microk8s/common/run/containerd",
    "run/k0s/containerd",
};

// k8s.io of the kubelet's, default or any other of ctr's and nerdctl's.
void each_namespace(const HostFiles& files, const std::function<void(const std::string& folder)>& visit)
{
    for (const char* state : state_folders) {
        const std::string tasks = std::string(state) + "/io.containerd.runtime.v2.task/";
        for (const std::string& name : files.list(tasks))
            if (name != "moby") // docker's, which gives no names here
                visit(tasks + name);
    }
}

std::optional<ContainerRecord> read_task(const HostFiles& files, const std::string& folder, const std::string& id)
{
    ContainerRecord record{id, {}, {}};
    if (!read_oci_config(files, folder + '/' + id + "/config.json", record))
        return std::nullopt;
    record.names.runtime = "containerd";
    return record;
}

std::optional<ContainerRecord> find_task(const HostFiles& files, const std::string& id)
{
    std::optional<ContainerRecord> found;
    each_namespace(files, [&](const std::string& folder) {
        if (!found)
            found = read_task(files, folder, id);
    });
    return found;
}

void each_task(const HostFiles& files, const std::function<void(const ContainerRecord&)>& visit)
{
    each_namespace(files, [&](const std::string& folder) {
        for (const std::string& id : files.list(folder)) {
            const auto record = is_container_id(id) ? read_task(files, folder, id) : std::nullopt;
            if (record)
                visit(*record);
        }
    });
}

} // namespace

const ContainerSource containerd_tasks = {find_task, each_task};

} // namespace gpusnoop
