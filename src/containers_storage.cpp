// SPDX-License-Identifier: Apache-2.0
// The storage that CRI-O and podman share: a list of all containers, and the OCI configuration of each.
#include "container_sources.hpp"

#include "json_strings.hpp"

#include <array>

namespace gpusnoop {

namespace {

constexpr std::array<const char*, 3> storage_folders = {
    "run/containers/storage/overlay-containers/",          // where CRI-O has the configurations
    "var/lib/containers/storage/overlay-containers/",      // where podman has them
    ".local/share/containers/storage/overlay-containers/", // in a home
};

// Containers that shall not survive a reboot (podman run --rm) are in a list of their own.
constexpr std::array<const char*, 2> list_files = {"containers.json", "volatile-containers.json"};

// Each element of a list file.
void each_listed(std::string_view text, const std::function<void(const ContainerRecord&)>& visit)
{
    std::string element;
    ContainerRecord record;
    std::string name;
    const auto end_element = [&] {
        record.set_given_name(name);
        record.names.runtime = name.starts_with("k8s_") ? "cri-o" : "podman";
        if (is_container_id(record.id))
            visit(record);
        record = {};
        name.clear();
    };
    each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at[0] != element) {
            end_element();
            element = at[0];
        }
        if (at.size() == 2 && at[1] == "id")
            record.id = value;
        else if (at.size() == 3 && at[1] == "names" && at[2] == "0")
            name = value;
        else if (at.size() == 2 && at[1] == "metadata") // JSON in JSON
            each_json_string(value, [&](const JsonPath& inner, const std::string& image) {
                if (inner.size() == 1 && inner[0] == "image-name")
                    record.set_image(image);
            });
    });
    end_element();
}

void each_in_lists(const HostFiles& files, const std::function<void(const ContainerRecord&)>& visit)
{
    for (const char* folder : storage_folders)
        for (const char* list : list_files)
            if (const auto text = files.read(std::string(folder) + list))
                each_listed(*text, visit);
}

std::optional<ContainerRecord> read_configuration(const HostFiles& files, const std::string& folder,
                                                  const std::string& id)
{
    ContainerRecord record{id, {}, {}};
    return read_oci_config(files, folder + id + "/userdata/config.json", record) ? std::optional(record) : std::nullopt;
}

std::optional<ContainerRecord> find_stored(const HostFiles& files, const std::string& id)
{
    std::optional<ContainerRecord> found;
    for (const char* folder : storage_folders)
        if (!found)
            found = read_configuration(files, folder, id);
    each_in_lists(files, [&](const ContainerRecord& listed) {
        if (listed.id != id)
            return;
        if (found)
            fill(found->names, listed.names);
        else
            found = listed;
    });
    return found;
}

void each_stored(const HostFiles& files, const std::function<void(const ContainerRecord&)>& visit)
{
    each_in_lists(files, visit);
    for (const char* folder : storage_folders)
        for (const std::string& id : files.list(folder)) {
            const auto record = is_container_id(id) ? read_configuration(files, folder, id) : std::nullopt;
            if (record)
                visit(*record);
        }
}

} // namespace

const ContainerSource containers_storage = {find_stored, each_stored};

} // namespace gpusnoop
