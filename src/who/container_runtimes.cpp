// SPDX-License-Identifier: Apache-2.0
#include "who/container_runtimes.hpp"

#include "base/json_strings.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace gpusnoop {

// Labels and annotations that kubelets and runtimes set on their containers.

namespace {

constexpr size_t max_text = 4096; // pod names have up to 253 bytes, image names a few hundred
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
    // set by containerd's CRI plugin; the uid only since 1.6.11
    {"io.kubernetes.cri.container-name", &ContainerNames::container},
    {"io.kubernetes.cri.sandbox-name", &ContainerNames::pod},
    {"io.kubernetes.cri.sandbox-namespace", &ContainerNames::pod_namespace},
    {"io.kubernetes.cri.sandbox-uid", &ContainerNames::pod_uid},
    {"io.kubernetes.cri.image-name", &ContainerNames::image},
    {"io.kubernetes.cri.podsandbox.image-name", &ContainerNames::image},
    // set by the kubelet; CRI-O and cri-dockerd keep these labels, and CRI-O adds the last two
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

// Adds a label set by the user. Skips labels set by kubelets and runtimes, because they do not identify an owner.
void add_label(ContainerRecord& record, std::string_view key, std::string_view value)
{
    constexpr size_t labels_max = 64, bytes_max = 400; // Kubernetes allows 317 bytes for the key and 63 for the value
    constexpr std::array<std::string_view, 3> own = {"io.kubernetes.", "io.container.", "org.opencontainers."};
    std::vector<std::string>& labels = record.names.labels;
    if (labels.size() < labels_max && key.size() + value.size() < bytes_max &&
        std::ranges::none_of(own, [&](std::string_view prefix) { return key.starts_with(prefix); }))
        labels.push_back(std::string(key).append("=").append(value));
}

// Parses the name that cri-dockerd or CRI-O gives to a container: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT. For a
// sandbox, CONTAINER is "POD" or missing. None of the parts can contain an underscore.
bool set_kubelet_name(ContainerNames& names, std::string_view given)
{
    const auto underscores = std::ranges::count(given, '_');
    if (next_part(given, '_') != "k8s" || underscores < 4)
        return false;
    const std::string_view container = underscores == 4 ? "POD" : next_part(given, '_');
    if (container == "POD")
        names.sandbox = true;
    else
        set_once(names.container, container);
    set_once(names.pod, next_part(given, '_'));
    set_once(names.pod_namespace, next_part(given, '_'));
    set_once(names.pod_uid, next_part(given, '_'));
    return true;
}

// If the path consists of the prefix and a number, appends the number to `to`.
void add_number(std::string_view path, std::string_view prefix, std::vector<uint32_t>& to)
{
    constexpr size_t numbers_max = 256;
    if (!path.starts_with(prefix) || to.size() == numbers_max)
        return;
    if (const auto number = parse_number<uint32_t>(path.substr(prefix.size())))
        to.push_back(*number);
}

} // namespace

void ContainerRecord::set_label(std::string_view key, std::string_view value)
{
    set_plain_label(*this, key, value);
    add_label(*this, key, value);
    // The value is JSON with all labels that the kubelet has set. It must be parsed, because some versions of CRI-O do
    // not store these labels as separate annotations.
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

// The table of container runtimes. A new runtime needs a row, and a parser if no existing one can read its records.

constinit const std::array<ContainerRuntime, 5> container_runtimes = {{
    {.name = "containerd",
     .prefixes = {"cri-containerd", "nerdctl"},
     .parents = {"default", "k8s.io"}, // the namespace of ctr and nerdctl, and the namespace of CRI
     .folders = {"run/containerd/io.containerd.runtime.v2.task/*",
                 "run/k3s/containerd/io.containerd.runtime.v2.task/*", // also used by RKE2
                 "var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/*",
                 "run/k0s/containerd/io.containerd.runtime.v2.task/*"},
     .record = "config.json",
     .read = read_containerd_task},
    {.name = "cri-o", .prefixes = {"crio", "cri-o"}}, // its records are in podman's storage: see the next row
    {.name = "podman",
     .prefixes = {"libpod", "libpod-payload"},
     .folders = {"run/containers/storage/overlay-containers",           // CRI-O
                 "var/lib/containers/storage/overlay-containers",       // podman
                 ".local/share/containers/storage/overlay-containers"}, // in a user's home
     .in_homes = true,
     .record = "userdata/config.json",
     .read = read_oci_config,
     .each_listed = each_stored},
    {.name = "", // log files of the kubelet, for any runtime
     .folders = {"var/log/containers"},
     .each_listed = each_log_link},
    {.name = "docker",
     .prefixes = {"docker"},
     .parents = {"docker"}, // default value of --cgroup-parent
     .folders = {"var/lib/docker/containers", "var/snap/docker/common/var-lib-docker/containers",
                 ".local/share/docker/containers"}, // the last one is in a user's home
     .more_folders = docker_data_root,
     .in_homes = true,
     .record = "config.v2.json",
     .read = read_docker_config},
}};

// Parser for containerd's record of a running task, STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json.
// containerd removes the file when the task exits.

bool read_containerd_task(const std::string& text, ContainerRecord& record)
{
    const bool read = read_oci_config(text, record);
    record.names.runtime = "containerd"; // even if an annotation names another runtime
    return read;
}

// Parser for docker's record of a container, containers/ID/config.v2.json in its data folder.

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
    // The daemon writes a slash before the name.
    record.set_given_name(name.starts_with('/') ? std::string_view(name).substr(1) : name);
    record.names.runtime = "docker";
    return read;
}

// Names of the kubelet's log files, which have the same form for every runtime. The logs themselves are never read.

namespace {

constexpr const char* pods_folder = "var/log/pods/";

// Parses POD_NAMESPACE_CONTAINER-ID.log. The parts contain no underscores. A long name is truncated, which cuts off the
// id.
std::optional<ContainerRecord> parse_link(std::string_view name)
{
    constexpr std::string_view suffix = ".log";
    if (!name.ends_with(suffix))
        return std::nullopt;
    name.remove_suffix(suffix.size());
    ContainerRecord record;
    const size_t id_at = name.rfind('-') + 1;
    record.id = name.substr(id_at);
    const size_t pod_end = name.find('_');
    const size_t namespace_end = pod_end == std::string_view::npos ? pod_end : name.find('_', pod_end + 1);
    if (id_at == 0 || namespace_end == std::string_view::npos || !is_container_id(record.id))
        return std::nullopt;
    record.names.pod = name.substr(0, pod_end);
    record.names.pod_namespace = name.substr(pod_end + 1, namespace_end - pod_end - 1);
    record.names.container = name.substr(namespace_end + 1, id_at - 1 - (namespace_end + 1));
    return record;
}

} // namespace

void each_log_link(const HostFiles& host, const std::string& folder, const VisitRecord& visit)
{
    for (const std::string& name : host.list(folder))
        if (const auto record = parse_link(name))
            visit(*record);
}

void each_logged_pod(const HostFiles& host, const std::function<void(const ContainerNames&)>& visit)
{
    // Each name is NAMESPACE_POD_UID.
    for (const std::string& name : host.list(pods_folder)) {
        const size_t namespace_end = name.find('_');
        const size_t pod_end = name.rfind('_');
        if (namespace_end == std::string::npos || namespace_end == pod_end)
            continue;
        ContainerNames pod;
        pod.pod_namespace = name.substr(0, namespace_end);
        pod.pod = name.substr(namespace_end + 1, pod_end - namespace_end - 1);
        pod.pod_uid = name.substr(pod_end + 1);
        visit(pod);
    }
}

std::string only_container(const HostFiles& host, const ContainerNames& pod)
{
    const auto names = host.list(pods_folder + pod.pod_namespace + '_' + pod.pod + '_' + pod.pod_uid);
    return names.size() == 1 ? names.front() : std::string();
}

// Parsers for the storage that CRI-O and podman share: lists of all containers, and the OCI configuration of each
// container.

namespace {

// The second file lists containers that do not survive a reboot (podman run --rm).
constexpr std::array<const char*, 2> list_files = {"containers.json", "volatile-containers.json"};

// Visits the containers in the text of a list file.
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
        else if (at.size() == 2 && at[1] == "metadata") // the value is JSON, too
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
