// SPDX-License-Identifier: Apache-2.0
// Names of log folders and links, as kubelets create them. Other programs may be able to write there too.
#include "tests/fuzz/target.hpp"
#include "who/container_runtimes.hpp"

#include <filesystem>
#include <fstream>

using namespace gpusnoop;

void fuzz(std::string_view input)
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
