// SPDX-License-Identifier: Apache-2.0
// What the docker daemon keeps about each container: containers/ID/config.v2.json below its data folder.
#include "who/container_runtimes.hpp"

#include "base/json_strings.hpp"

namespace gpusnoop {

std::vector<std::string> docker_data_root(const HostFiles& files)
{
    std::vector<std::string> folders;
    if (const auto text = files.read("etc/docker/daemon.json"))
        each_json_string(*text, [&](const JsonPath& at, const std::string& value) {
            if (at.size() == 1 && at[0] == "data-root")
                folders.push_back(value + "/containers");
        });
    return folders;
}

bool read_docker_config(const std::string& text, ContainerRecord& record)
{
    std::string name;
    const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() == 1 && at[0] == "Name")
            name = value;
        else if (at.size() == 2 && at[0] == "Config" && at[1] == "Image")
            record.set_image(value);
        else if (at.size() == 3 && at[0] == "Config" && at[1] == "Env")
            record.set_environment(value);
        else if (at.size() == 3 && at[0] == "Config" && at[1] == "Labels")
            record.set_label(at[2], value);
    });
    // The daemon writes the name with a slash before it.
    record.set_given_name(name.starts_with('/') ? std::string_view(name).substr(1) : name);
    record.names.runtime = "docker";
    return read;
}

} // namespace gpusnoop
