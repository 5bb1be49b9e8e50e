// SPDX-License-Identifier: Apache-2.0
// The names that the kubelet gives to logs, the same for every runtime. Only the names are read, never a log.
#include "who/container_runtimes.hpp"

#include <optional>

namespace gpusnoop {

namespace {

constexpr const char* pods_folder = "var/log/pods/";

// POD_NAMESPACE_CONTAINER-ID.log, where the first three have no underscore. A long name is cut, which takes the id.
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
    // NAMESPACE_POD_UID
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

} // namespace gpusnoop
