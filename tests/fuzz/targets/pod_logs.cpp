// SPDX-License-Identifier: Apache-2.0
// Names of folders and links that kubelets make for logs, and whoever else may write there.
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
    unsigned seen = 0;
    each_logged_pod(files, [&](const ContainerNames& pod) {
        seen++;
        expect(pod.pod_namespace + '_' + pod.pod + '_' + pod.pod_uid == name, "a folder is called by its pod");
        expect(only_container(files, pod) == "trainer", "the container is in the folder");
    });
    each_log_link(files, "links", [&](const ContainerRecord& record) {
        seen++;
        const ContainerNames& n = record.names;
        expect(is_container_id(record.id), "an id is one, and so safe in paths");
        expect(n.pod + '_' + n.pod_namespace + '_' + n.container + '-' + record.id + ".log" == name,
               "a link is called by its container");
    });
    expect(seen <= 2, "a name is one pod");
    std::filesystem::remove_all(pods + name);
    std::filesystem::remove_all(links + name);
}
