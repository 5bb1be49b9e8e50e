// SPDX-License-Identifier: Apache-2.0
// What the docker daemon keeps about each container: containers/ID/config.v2.json below its data folder.
#include "container_sources.hpp"

#include "json_strings.hpp"

#include <algorithm>
#include <vector>

namespace gpusnoop {

namespace {

std::vector<std::string> data_folders(const HostFiles& files)
{
    std::vector<std::string> folders = {"var/lib/docker", "var/snap/docker/common/var-lib-docker",
                                        ".local/share/docker"}; // the last one is in a home
    if (const auto text = files.read("etc/docker/daemon.json"))
        each_json_string(*text, [&](const JsonPath& at, const std::string& value) {
            if (at.size() == 1 && at[0] == "data-root")
                folders.push_back(value);
        });
    return folders;
}

std::optional<ContainerRecord> read_config(const HostFiles& files, const std::string& folder, const std::string& id)
{
    const auto text = files.read(folder + "/containers/" + id + "/config.v2.json");
    if (!text)
        return std::nullopt;
    ContainerRecord record{id, {}, {}};
    std::string name;
    if (!each_json_string(*text, [&](const JsonPath& at, const std::string& value) {
            if (at.size() == 1 && at[0] == "Name")
                name = value;
            else if (at.size() == 2 && at[0] == "Config" && at[1] == "Image")
                record.set_image(value);
            else if (at.size() == 3 && at[0] == "Config" && at[1] == "Labels")
                record.set_label(at[2], value);
        }))
        return std::nullopt;
    // The daemon writes the name with a slash before it.
    record.set_given_name(name.starts_with('/') ? std::string_view(name).substr(1) : name);
    record.names.runtime = "docker";
    return record;
}

std::optional<ContainerRecord> find_container(const HostFiles& files, const std::string& id)
{
    for (const std::string& folder : data_folders(files))
        if (auto record = read_config(files, folder, id))
            return record;
    return std::nullopt;
}

void each_container(const HostFiles& files, const std::function<void(const ContainerRecord&)>& visit)
{
    for (const std::string& folder : data_folders(files))
        for (const std::string& id : files.list(folder + "/containers")) {
            const auto record = is_container_id(id) ? read_config(files, folder, id) : std::nullopt;
            if (record)
                visit(*record);
        }
}

} // namespace

const ContainerSource docker_containers = {find_container, each_container};

} // namespace gpusnoop
