// SPDX-License-Identifier: Apache-2.0
// Container metadata files; the user who starts a container chooses its labels. Each input is parsed as a metadata file
// of each runtime.
#include "tests/fuzz/target.hpp"
#include "who/container_runtimes.hpp"

using namespace gpusnoop;

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

void fuzz(std::string_view input)
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
