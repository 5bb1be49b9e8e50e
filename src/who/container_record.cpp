// SPDX-License-Identifier: Apache-2.0
// The labels and annotations by which kubelets and runtimes mark their containers.
#include "who/container_record.hpp"

#include "base/json_strings.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace gpusnoop {

namespace {

constexpr size_t max_text = 4096; // a pod's name has 253 bytes, an image's some hundred
constexpr size_t max_id = 128;

void set_once(std::string& to, std::string_view value)
{
    if (to.empty() && value.size() <= max_text)
        to = value;
}

struct NameLabel {
    std::string_view key;
    std::string ContainerNames::*field;
};

constexpr std::array<NameLabel, 12> name_labels = {{
    // containerd's CRI plugin; the uid since 1.6.11
    {"io.kubernetes.cri.container-name", &ContainerNames::container},
    {"io.kubernetes.cri.sandbox-name", &ContainerNames::pod},
    {"io.kubernetes.cri.sandbox-namespace", &ContainerNames::pod_namespace},
    {"io.kubernetes.cri.sandbox-uid", &ContainerNames::pod_uid},
    {"io.kubernetes.cri.image-name", &ContainerNames::image},
    {"io.kubernetes.cri.podsandbox.image-name", &ContainerNames::image},
    // the kubelet, which CRI-O and cri-dockerd pass on
    {"io.kubernetes.container.name", &ContainerNames::container},
    {"io.kubernetes.pod.name", &ContainerNames::pod},
    {"io.kubernetes.pod.namespace", &ContainerNames::pod_namespace},
    {"io.kubernetes.pod.uid", &ContainerNames::pod_uid},
    {"io.kubernetes.cri-o.ImageName", &ContainerNames::image},
    {"io.kubernetes.cri-o.SandboxImage", &ContainerNames::image},
}};

struct SandboxLabel {
    std::string_view key, value;
};

constexpr std::array<SandboxLabel, 4> sandbox_labels = {{
    {"io.kubernetes.cri.container-type", "sandbox"},
    {"io.kubernetes.cri-o.ContainerType", "sandbox"},
    {"io.kubernetes.docker.type", "podsandbox"},
    {"io.kubernetes.container.name", "POD"},
}};

void set_plain_label(ContainerRecord& record, std::string_view key, std::string_view value)
{
    for (const NameLabel& label : name_labels)
        if (key == label.key)
            set_once(record.names.*label.field, value);
    for (const SandboxLabel& label : sandbox_labels)
        record.names.sandbox |= key == label.key && value == label.value;
    if (key == "nerdctl/name" || key == "io.kubernetes.cri-o.Name")
        record.set_given_name(value);
    if (key == "io.kubernetes.cri-o.SandboxID")
        set_once(record.sandbox_id, value);
    if (key == "io.container.manager" && (value == "cri-o" || value == "libpod"))
        set_once(record.names.runtime, value == "cri-o" ? "cri-o" : "podman");
}

// What kubelets and runtimes write themselves says nothing of whose a container is.
void add_label(ContainerRecord& record, std::string_view key, std::string_view value)
{
    constexpr size_t most = 64, longest = 400; // of Kubernetes: 317 and 63 bytes
    constexpr std::array<std::string_view, 3> own = {"io.kubernetes.", "io.container.", "org.opencontainers."};
    std::vector<std::string>& labels = record.names.labels;
    if (labels.size() < most && key.size() + value.size() < longest &&
        std::ranges::none_of(own, [&](std::string_view prefix) { return key.starts_with(prefix); }))
        labels.push_back(std::string(key).append("=").append(value));
}

std::string_view take_part(std::string_view& text)
{
    const size_t end = std::min(text.find('_'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

// k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT of cri-dockerd and CRI-O. CONTAINER is POD for a sandbox, or is not there.
// None of them can have an underscore.
bool set_kubelet_name(ContainerNames& names, std::string_view given)
{
    const auto underscores = std::ranges::count(given, '_');
    if (take_part(given) != "k8s" || underscores < 4)
        return false;
    const std::string_view container = underscores == 4 ? "POD" : take_part(given);
    if (container == "POD")
        names.sandbox = true;
    else
        set_once(names.container, container);
    set_once(names.pod, take_part(given));
    set_once(names.pod_namespace, take_part(given));
    set_once(names.pod_uid, take_part(given));
    return true;
}

// What stands behind the prefix, if it is a number.
void add_number(std::string_view path, std::string_view prefix, std::vector<uint32_t>& to)
{
    constexpr size_t most = 256;
    uint32_t number = 0;
    if (!path.starts_with(prefix) || to.size() == most)
        return;
    const char* const end = path.data() + path.size();
    const auto [behind, error] = std::from_chars(path.data() + prefix.size(), end, number);
    if (error == std::errc() && behind == end)
        to.push_back(number);
}

} // namespace

void ContainerRecord::set_label(std::string_view key, std::string_view value)
{
    set_plain_label(*this, key, value);
    add_label(*this, key, value);
    // The kubelet's labels in one; in some versions they are not among the annotations themselves.
    if (key == "io.kubernetes.cri-o.Labels")
        each_json_string(value, [&](const JsonPath& at, const std::string& text) {
            if (at.size() != 1)
                return;
            set_plain_label(*this, at[0], text);
            add_label(*this, at[0], text);
        });
}

void ContainerRecord::set_given_name(std::string_view name)
{
    if (!given_name.empty() || name.size() > max_text)
        return;
    given_name = name;
    if (!set_kubelet_name(names, name))
        set_once(names.container, name);
}

void ContainerRecord::set_image(std::string_view image)
{
    set_once(names.image, image);
}

void ContainerRecord::set_environment(std::string_view variable)
{
    constexpr std::string_view visible = "NVIDIA_VISIBLE_DEVICES=";
    if (variable.starts_with(visible))
        set_once(names.visible_devices, variable.substr(visible.size()));
}

void ContainerRecord::set_device(std::string_view path)
{
    add_number(path, "/dev/nvidia", names.gpu_files);
    add_number(path, "/dev/nvidia-caps/nvidia-cap", names.cap_files);
}

void fill(ContainerNames& names, const ContainerNames& more)
{
    for (const auto field :
         {&ContainerNames::container, &ContainerNames::pod, &ContainerNames::pod_namespace, &ContainerNames::pod_uid,
          &ContainerNames::runtime, &ContainerNames::image, &ContainerNames::visible_devices})
        set_once(names.*field, more.*field);
    if (names.gpu_files.empty())
        names.gpu_files = more.gpu_files;
    if (names.cap_files.empty())
        names.cap_files = more.cap_files;
    if (names.labels.empty())
        names.labels = more.labels;
    names.sandbox |= more.sandbox;
    if (names.sandbox)
        names.container.clear();
}

bool is_container_id(std::string_view text)
{
    return !text.empty() && text.size() <= max_id &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

bool read_oci_config(const std::string& text, ContainerRecord& record)
{
    return each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() == 2 && at[0] == "annotations")
            record.set_label(at[1], value);
        else if (at.size() == 3 && at[0] == "process" && at[1] == "env")
            record.set_environment(value);
        else if (at.size() == 4 && at[0] == "linux" && at[1] == "devices" && at[3] == "path")
            record.set_device(value);
    });
}

} // namespace gpusnoop
