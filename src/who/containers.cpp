// SPDX-License-Identifier: Apache-2.0
#include "who/containers.hpp"

#include "base/privileges.hpp"
#include "base/text.hpp"
#include "reader/reader.hpp"
#include "who/container_runtimes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

// Home folders by uid, from the host's /etc/passwd. Users of a directory service are missing.
std::map<uint32_t, std::string> homes_by_user(const HostFiles& host)
{
    std::map<uint32_t, std::string> homes;
    for (UserAccount& account : parse_accounts(host.read("etc/passwd").value_or("")))
        homes.emplace(account.uid, std::move(account.home));
    return homes;
}

// Home folders by uid, only of users who have a session or linger (loginctl). Other users have no running containers.
std::map<uint32_t, HostFiles> homes_in_use(const HostFiles& host)
{
    std::map<uint32_t, HostFiles> files;
    const auto homes = homes_by_user(host);
    for (const std::string& name : host.list("run/user")) {
        const auto uid = parse_number<uint32_t>(name);
        const auto home = uid ? homes.find(*uid) : homes.end();
        if (home != homes.end())
            files.emplace(*uid, host.untrusted(home->second));
    }
    return files;
}

// Returns the folders in which a runtime keeps a subfolder for each container.
std::vector<std::string> folders_of(const HostFiles& files, const ContainerRuntime& runtime)
{
    std::vector<std::string> folders;
    for (std::string_view folder : runtime.folders) {
        if (folder.empty())
            break;
        if (!folder.ends_with('*')) {
            folders.emplace_back(folder);
            continue;
        }
        folder.remove_suffix(1);
        for (const std::string& name : files.list(std::string(folder)))
            if (name != "moby") // docker's namespace in containerd; its records have no names
                folders.push_back(std::string(folder) + name);
    }
    if (runtime.more_folders)
        std::ranges::move(runtime.more_folders(files), std::back_inserter(folders));
    return folders;
}

std::optional<ContainerRecord> read_record(const HostFiles& files, const ContainerRuntime& runtime,
                                           const std::string& folder, const std::string& id)
{
    ContainerRecord record{id, {}, {}};
    const auto text = files.read(folder + '/' + id + '/' + std::string(runtime.record));
    return text && runtime.read(*text, record) ? std::optional(std::move(record)) : std::nullopt;
}

// Adds the labels of the container's pod. In CRI-O, only the record of the pod's sandbox has these labels.
void add_labels_of_pod(const HostFiles& files, const ContainerRuntime& runtime, const std::string& folder,
                       ContainerRecord& record)
{
    if (!is_container_id(record.sandbox_id) || record.sandbox_id == record.id)
        return;
    if (const auto sandbox = read_record(files, runtime, folder, record.sandbox_id))
        std::ranges::copy(sandbox->names.labels, std::back_inserter(record.names.labels));
}

// Fills `names` from one runtime's records of a container. The id must have passed is_container_id().
void fill_from(const HostFiles& files, const ContainerRuntime& runtime, const std::string& id, ContainerNames& names)
{
    const auto folders = folders_of(files, runtime);
    for (const std::string& folder : folders) {
        auto record = runtime.read ? read_record(files, runtime, folder, id) : std::nullopt;
        if (!record)
            continue;
        add_labels_of_pod(files, runtime, folder, *record);
        fill(names, record->names);
        break;
    }
    for (const std::string& folder : folders)
        if (runtime.each_listed)
            runtime.each_listed(files, folder, [&](const ContainerRecord& record) {
                if (record.id == id)
                    fill(names, record.names);
            });
}

// Visits all containers of a runtime. A container may be visited twice.
void each_of(const HostFiles& files, const ContainerRuntime& runtime, const VisitRecord& visit)
{
    const auto folders = folders_of(files, runtime);
    for (const std::string& folder : folders)
        if (runtime.each_listed)
            runtime.each_listed(files, folder, visit);
    for (const std::string& folder : folders)
        for (const std::string& id : runtime.read ? files.list(folder) : std::vector<std::string>()) {
            const auto record = is_container_id(id) ? read_record(files, runtime, folder, id) : std::nullopt;
            if (record)
                visit(*record);
        }
}

// Visits root's containers. Users' containers are recorded in their homes.
void each_container(const HostFiles& host, const VisitRecord& visit)
{
    for (const ContainerRuntime& runtime : container_runtimes)
        each_of(host, runtime, visit);
}

void each_in_home(const HostFiles& home, const VisitRecord& visit)
{
    for (const ContainerRuntime& runtime : container_runtimes)
        if (runtime.in_homes)
            each_of(home, runtime, visit);
}

// Returns the names of a user's own container. The user controls the record, so its pod and labels are ignored. The
// GPUs that the record lists are used, because false entries would harm only this user.
ContainerNames names_in_home(const HostFiles& host, const CgroupOwner& owner)
{
    ContainerNames names;
    const auto homes = homes_by_user(host);
    const auto home = owner.uid ? homes.find(*owner.uid) : homes.end();
    if (home == homes.end())
        return names;
    const HostFiles files = host.untrusted(home->second);
    for (const ContainerRuntime& runtime : container_runtimes)
        if (runtime.in_homes)
            fill_from(files, runtime, owner.container_id, names);
    names.pod.clear();
    names.pod_namespace.clear();
    names.pod_uid.clear();
    names.labels.clear();
    return names;
}

} // namespace

Containers::Containers(const std::string& host_root) : host_(host_root) {}

ContainerNames Containers::find(const CgroupOwner& owner) const
{
    ContainerNames names;
    const bool in_container = is_container_id(owner.container_id);
    if (in_container && owner.named_by_user)
        names = names_in_home(host_, owner);
    else if (in_container && owner.node_id.empty()) // a Kubernetes node records its containers on its own disk
        for (const ContainerRuntime& runtime : container_runtimes)
            fill_from(host_, runtime, owner.container_id, names);

    ContainerNames path; // facts from the cgroup path, which fill fields that the records lack
    path.runtime = owner.runtime;
    path.pod_uid = is_container_id(owner.pod_uid) ? owner.pod_uid : "";
    fill(names, path);
    if (!owner.node_id.empty())
        return names;
    if (!names.pod_uid.empty() && (names.pod.empty() || names.pod_namespace.empty() || names.container.empty()))
        each_logged_pod(host_, [&](const ContainerNames& pod) {
            if (pod.pod_uid != names.pod_uid)
                return;
            fill(names, pod);
            if (in_container && !names.sandbox && names.container.empty())
                names.container = only_container(host_, pod);
        });
    return names;
}

Containers::Pod Containers::find_pod(std::string_view pod_namespace, std::string_view name) const
{
    Pod pod;
    const auto add_uid = [&](const ContainerNames& names) {
        const bool found = !name.empty() && names.pod == name && names.pod_namespace == pod_namespace;
        if (found && is_container_id(names.pod_uid))
            pod.uids.insert(names.pod_uid);
        return found;
    };
    each_container(host_, [&](const ContainerRecord& record) {
        if (add_uid(record.names))
            pod.container_ids.insert(record.id);
    });
    each_logged_pod(host_, add_uid);
    return pod;
}

std::set<Containers::Named> Containers::find_named(std::string_view name) const
{
    std::set<Named> found;
    const auto add_to = [&](std::optional<uint32_t> uid) {
        return [&, uid](const ContainerRecord& record) {
            if (!name.empty() && record.given_name == name)
                found.insert({record.id, uid});
        };
    };
    each_container(host_, add_to(std::nullopt));
    for (const auto& [uid, home] : homes_in_use(host_))
        each_in_home(home, add_to(uid));
    return found;
}

namespace {

constexpr uint64_t max_container_memory = 128 << 20;
constexpr size_t answers_max = 4096; // maximum number of replies that find() has not returned yet

void serve(Helper::Task& task, const std::string& host_root)
{
    const Containers containers(host_root);
    answer_each<CgroupOwner>(task, [&](const CgroupOwner& owner) {
        task.set_status("the records of container " + owner.container_id);
        return ContainerAnswer{owner, containers.find(owner)};
    });
}

} // namespace

ContainerLookup::ContainerLookup(const std::string& host_root, WaitBudget* waits)
    : reader_({.sandbox = process_reading_sandbox(max_container_memory),
               .serve = [host_root](Helper::Task& task) { serve(task, host_root); },
               .apply = [this](const Message& message) { return apply(message); },
               .consequence = "names of containers and pods may be missing"},
              waits)
{}

std::optional<ContainerNames> ContainerLookup::find(const CgroupOwner& owner)
{
    reader_.poll();
    if (!answers_.contains(owner))
        reader_.ask(0, message_of(owner));
    auto answer = answers_.extract(owner);
    return answer ? std::optional(std::move(answer.mapped())) : std::nullopt;
}

bool ContainerLookup::apply(const Message& message)
{
    auto answer = read_message<ContainerAnswer>(message.bytes);
    if (!answer)
        return false;
    if (answers_.size() < answers_max)
        answers_.insert_or_assign(std::move(answer->owner), std::move(answer->names));
    return true;
}

} // namespace gpusnoop
