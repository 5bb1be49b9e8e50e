// SPDX-License-Identifier: Apache-2.0
// Cgroup paths, container metadata and log folders, which users and container runtimes control.
#include "tests/fuzz/target.hpp"
#include "who/cgroup_path.hpp"
#include "who/container_runtimes.hpp"

#include <filesystem>
#include <fstream>

using namespace gpusnoop;

// Cgroup paths. Users can create cgroups in subtrees delegated to them.
TARGET(cgroup_path)
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

namespace {

void check(const ContainerNames& names)
{
    for (const std::string& name : {names.container, names.pod, names.pod_namespace, names.pod_uid, names.image})
        expect(name.size() <= 4096, "names are bounded");
    expect(names.runtime.empty() || names.runtime == "docker" || names.runtime == "containerd" ||
               names.runtime == "cri-o" || names.runtime == "podman",
           "the runtime is known");
}

void check_lists(const ContainerNames& names)
{
    expect(names.labels.size() <= 64 && names.gpu_files.size() <= 256 && names.cap_files.size() <= 256,
           "lists are bounded");
    for (const std::string& label : names.labels)
        expect(label.size() <= 400 && label.find('=') != label.npos, "labels are KEY=VALUE, and bounded");
}

void check(const ContainerRecord& record)
{
    expect(record.given_name.size() <= 4096, "names are bounded");
    check(record.names);
    check_lists(record.names);
    ContainerNames all;
    fill(all, record.names);
    expect(!all.sandbox || all.container.empty(), "a sandbox has no name");
}

} // namespace

// Container metadata files; the user who starts a container chooses its labels. Each input is parsed as a metadata file
// of each runtime.
TARGET(containers)
{
    const std::string text(input);
    for (const auto& read : {read_docker_config, read_containerd_task, read_oci_config}) {
        ContainerRecord record;
        read(text, record);
        check(record);
    }
    static const Folder folder;
    folder.write("containers.json", input);
    folder.write("etc/docker/daemon.json", input);
    static const HostFiles files(folder.path());
    each_stored(files, ".", [](const ContainerRecord& record) {
        expect(is_container_id(record.id), "the id is valid, so safe in paths");
        check(record);
    });
    for (const std::string& root : docker_data_root(files))
        expect(root.ends_with("/containers"), "the path is a containers folder");
}

// Names of log folders and links, as kubelets create them. Other programs may be able to write there too.
TARGET(pod_logs)
{
    const std::string name(input.substr(0, std::min<size_t>(input.find_first_of(std::string_view("\0/", 2)), 255)));
    if (name.empty() || name == "." || name == "..")
        return;
    static const Folder folder;
    static const HostFiles files(folder.path());
    const std::string pods = folder.path() + "/var/log/pods/", links = folder.path() + "/links/";
    std::filesystem::create_directories(pods + name + "/trainer");
    std::filesystem::create_directories(links + name);
    unsigned found = 0;
    each_logged_pod(files, [&](const ContainerNames& pod) {
        found++;
        expect(pod.pod_namespace + '_' + pod.pod + '_' + pod.pod_uid == name, "the folder has the pod's name");
        expect(only_container(files, pod) == "trainer", "the folder contains the container");
    });
    each_log_link(files, "links", [&](const ContainerRecord& record) {
        found++;
        const ContainerNames& n = record.names;
        expect(is_container_id(record.id), "the id is valid, so safe in paths");
        expect(n.pod + '_' + n.pod_namespace + '_' + n.container + '-' + record.id + ".log" == name,
               "the link has the container's name");
    });
    expect(found <= 2, "a name yields at most one pod and one container");
    std::filesystem::remove_all(pods + name);
    std::filesystem::remove_all(links + name);
}
