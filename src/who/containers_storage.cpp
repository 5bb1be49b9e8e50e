// SPDX-License-Identifier: Apache-2.0
// The storage that CRI-O and podman share: a list of all containers, and the OCI configuration of each.
#include "who/container_runtimes.hpp"

#include "base/json_strings.hpp"

#include <array>

namespace gpusnoop {

namespace {

// Containers that shall not survive a reboot (podman run --rm) are in a list of their own.
constexpr std::array<const char*, 2> list_files = {"containers.json", "volatile-containers.json"};

// Each element of a list file.
void each_listed(std::string_view text, const VisitRecord& visit)
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

} // namespace

void each_stored(const HostFiles& files, const std::string& folder, const VisitRecord& visit)
{
    for (const char* list : list_files)
        if (const auto text = files.read(folder + '/' + list))
            each_listed(*text, visit);
}

} // namespace gpusnoop
