// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "who/containers.hpp"
#include "who/cuda_users.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr long v2_magic = 0x63677270; // CGROUP2_SUPER_MAGIC
constexpr long v1_magic = 0x27e0eb;   // CGROUP_SUPER_MAGIC
constexpr size_t shortest_id = 4;

bool is_cgroup(const std::string& path)
{
    struct statfs fs {};
    struct stat st {};
    return statfs(path.c_str(), &fs) == 0 && (fs.f_type == v2_magic || fs.f_type == v1_magic) &&
           stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

// Returns the device number of a file, which identifies the cgroup hierarchy; 0 if the file does not exist.
dev_t device_of(const std::string& path)
{
    struct stat st {};
    return stat(path.c_str(), &st) == 0 ? st.st_dev : 0;
}

std::string real_path(const std::string& path)
{
    std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), free);
    return real ? std::string(real.get()) : std::string();
}

Fd open_folder(const std::string& path)
{
    return Fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::vector<std::string> children(int cgroup)
{
    std::vector<std::string> names;
    const Directory entries(fdopendir(openat(cgroup, ".", O_RDONLY | O_CLOEXEC)));
    while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == DT_DIR && name != "." && name != "..")
            names.emplace_back(name);
    }
    return names;
}

struct Visited {
    int cgroup;       // descriptor of the cgroup's directory
    std::string path; // relative to the start of the walk
    uint64_t id;      // the id that the kernel side reports
    Delegation delegation;

    CgroupOwner owner() const { return parse_cgroup_path(path, delegation); }
};

// Visits a cgroup and the cgroups below it, outer ones first. If visit() returns false, the cgroups below that cgroup
// are skipped. Opens each cgroup relative to its parent's descriptor, because a path may be longer than PATH_MAX.
template<class Visit>
void walk(int cgroup, Delegation delegation, Visit&& visit, const std::string& path = "", int depth = 0)
{
    struct stat st {};
    if (fstat(cgroup, &st) != 0 || !visit(Visited{cgroup, path, st.st_ino, delegation}) || depth == CGROUP_WALK_MAX)
        return;
    if (delegation.from == std::string_view::npos) {
        const Delegation here = delegation_by(st, path.size());
        delegation = {.from = here.from, .uid = here.uid, .nodes = delegation.nodes};
    }
    for (const std::string& name : children(cgroup))
        if (const Fd child(openat(cgroup, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); child)
            walk(child.get(), delegation, visit, fmt::format("{}/{}", path, name), depth + 1);
}

void add_members(int cgroup, std::set<pid_t>& members)
{
    const Fd procs(openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC));
    std::ifstream list(fmt::format("/proc/self/fd/{}", procs.get()));
    for (pid_t pid = 0; list >> pid;)
        if (pid > 0) // 0: the process is outside of our pid namespace
            members.insert(pid);
}

std::string with_containers(std::string hint, const std::string& host_root)
{
    const std::string containers = containers_with_cuda(host_root);
    return containers.empty() ? hint : hint + "; " + containers;
}

pid_t first_process(int cgroup)
{
    const auto text = read_text(Fd(openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC)), 32);
    return text ? leading_number<pid_t>(*text).value_or(0) : 0;
}

} // namespace

std::vector<ContainerCgroup> container_cgroups(const std::string& host_root)
{
    constexpr size_t visited_max = 65'536; // per hierarchy
    std::vector<ContainerCgroup> of_users;
    const std::vector<CgroupMount> mounts = cgroup_mounts(host_root);
    const Delegation of_host{.uid = {}, .nodes = !has_pods(mounts)};
    for (const CgroupMount& mount : mounts) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        std::vector<ContainerCgroup> found;
        size_t seen = 0;
        walk(open_folder(mount.path).get(), of_host, [&](const Visited& at) {
            if (seen++ >= visited_max)
                return false;
            CgroupOwner owner = at.owner();
            const bool container = !owner.container_id.empty();
            const bool step = !container && !owner.slurm_step.empty();
            if (container || step || !owner.pod_uid.empty())
                found.push_back({at.id, at.path, std::move(owner), step ? first_process(at.cgroup) : 0});
            return !container;
        });
        if (std::ranges::any_of(found, [](const ContainerCgroup& one) { return !one.owner.named_by_user; }))
            return found;
        if (of_users.empty())
            of_users = std::move(found);
    }
    return of_users;
}

CgroupTarget::CgroupTarget(const std::string& argument, const std::string& host_root) : argument_(argument)
{
    constexpr std::string_view forms = "a path, a container's id or name, or pod:NAMESPACE/NAME";
    if (argument.empty())
        throw UsageError(fmt::format("the cgroup (-c) is empty: give {}", forms));
    const std::vector<CgroupMount> mounts = cgroup_mounts(host_root);
    if (mounts.empty())
        throw Error(
            fmt::format("no cgroup hierarchy is mounted below {}", host_root),
            "mount one (mount -t cgroup2 none /sys/fs/cgroup), or name the host's root directory with --host-root");
    if (argument.starts_with("pod:")) {
        find_pod(mounts, host_root);
        return;
    }
    if (find_path(mounts) || find_container(mounts, host_root))
        return;
    throw Error(fmt::format("there is no cgroup or container '{}'", argument),
                with_containers(fmt::format("give {}; cgroups are below {}{}", forms, mounts.front().path,
                                            mounts.size() > 1 ? " and " + mounts[1].path : ""),
                                host_root));
}

bool CgroupTarget::find_path(const std::vector<CgroupMount>& mounts)
{
    std::string rest = argument_;
    if (const std::string path = argument_.starts_with('/') ? real_path(argument_) : "";
        !path.empty() && is_cgroup(path)) {
        // Finds the hierarchy by its device number, which all its mounts share: the path may lead through a mount that
        // is not in `mounts`.
        const auto in =
            std::ranges::find(mounts, device_of(path), [](const CgroupMount& m) { return device_of(m.path); });
        if (in != mounts.end() && (in->v2 || in->controller != CONTROLLER_NONE)) {
            set_cgroups(*in, {path});
            return true;
        }
        // The path is in a hierarchy without a controller, such as systemd's own. Search for the same path in
        // hierarchies that the kernel side can read.
        rest = in != mounts.end() && is_below(path, in->path) ? path.substr(in->path.size()) : "";
        if (rest.empty())
            throw Error(fmt::format("{} belongs to a cgroup hierarchy without a controller", argument_),
                        "give the path of this cgroup in another hierarchy, such as memory or pids");
    }
    for (const CgroupMount& mount : mounts) {
        const std::string path = real_path(mount.path + "/" + rest);
        if (!is_below(path, mount.path) || !is_cgroup(path) || (!mount.v2 && mount.controller == CONTROLLER_NONE))
            continue;
        set_cgroups(mount, {path});
        return true;
    }
    return false;
}

void CgroupTarget::find_pod(const std::vector<CgroupMount>& mounts, const std::string& host_root)
{
    const std::string name = argument_.substr(argument_.find(':') + 1);
    const size_t slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() ||
        name.find('/', slash + 1) != std::string::npos)
        throw UsageError(fmt::format("a pod (-c) must be pod:NAMESPACE/NAME, not '{}'", argument_));
    const Containers::Pod pod = Containers(host_root).find_pod(std::string_view(name).substr(0, slash),
                                                               std::string_view(name).substr(slash + 1));
    if (pod.uids.empty() && pod.container_ids.empty())
        throw Error(fmt::format("there is no pod '{}' in namespace '{}' on this host", name.substr(slash + 1),
                                name.substr(0, slash)),
                    with_containers("list the pods on this host: ls /var/log/containers, or crictl pods", host_root));
    const Delegation of_host{.uid = {}, .nodes = !has_pods(mounts)};
    for (const CgroupMount& mount : mounts) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        std::vector<std::string> found;
        walk(open_folder(mount.path).get(), of_host, [&](const Visited& at) {
            const CgroupOwner owner = at.owner();
            const bool its = !owner.named_by_user && owner.node_id.empty() &&
                             (pod.uids.contains(owner.pod_uid) || pod.container_ids.contains(owner.container_id));
            if (its)
                found.push_back(mount.path + at.path);
            return !its;
        });
        if (!found.empty())
            return set_cgroups(mount, std::move(found));
    }
    throw Error(fmt::format("pod '{}' has no cgroup: it has ended, or has not started yet", name));
}

bool CgroupTarget::find_container(const std::vector<CgroupMount>& mounts, const std::string& host_root)
{
    const std::set<Containers::Named> named = Containers(host_root).find_named(argument_);
    const bool may_be_id =
        argument_.size() >= shortest_id && argument_.find_first_not_of("0123456789abcdef-") == std::string::npos;
    if (named.empty() && !may_be_id)
        return false;
    const Delegation of_host{.uid = {}, .nodes = !has_pods(mounts)};
    // In all hierarchies, containers that root runs on the host take precedence over containers of users and over
    // containers inside of containerized Kubernetes nodes.
    std::vector<std::pair<const CgroupMount*, std::vector<ContainerCgroup>>> hosts, of_others;
    for (const CgroupMount& mount : mounts) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        std::vector<ContainerCgroup> host, others;
        walk(open_folder(mount.path).get(), of_host, [&](const Visited& at) {
            CgroupOwner owner = at.owner();
            const std::string& id = owner.container_id;
            const bool has_name =
                owner.node_id.empty() && named.contains({id, owner.named_by_user ? owner.uid : std::nullopt});
            if (id.empty() || !(has_name || (may_be_id && id.starts_with(argument_))))
                return true;
            std::vector<ContainerCgroup>& found = owner.named_by_user || !owner.node_id.empty() ? others : host;
            if (std::ranges::none_of(found, [&](const ContainerCgroup& other) {
                    return other.owner.container_id == id && is_below(at.path, other.path);
                }))
                found.push_back({at.id, at.path, std::move(owner)});
            return true;
        });
        if (!host.empty())
            hosts.emplace_back(&mount, std::move(host));
        if (!others.empty())
            of_others.emplace_back(&mount, std::move(others));
    }
    const auto& all = hosts.empty() ? of_others : hosts;
    if (all.empty())
        return false;
    const auto& [mount, found] = all.front();
    if (found.size() > 1) {
        constexpr size_t listed_max = 8;
        std::vector<std::string> paths;
        for (const ContainerCgroup& one : found)
            paths.push_back(printable(mount->path + one.path)); // a user may have chosen the name
        throw Error(fmt::format("'{}' matches {} containers: {}", argument_, found.size(), listed(paths, listed_max)),
                    "give more digits of the id, or the path of one of them");
    }
    set_cgroups(*mount, {mount->path + found.front().path});
    return true;
}

void CgroupTarget::set_cgroups(const CgroupMount& mount, std::vector<std::string> paths)
{
    mount_ = mount;
    for (std::string& path : paths) {
        Fd directory = open_folder(path);
        struct stat st {};
        if (!directory || fstat(directory.get(), &st))
            throw Error(fmt::format("cannot open cgroup {}: {}", path, errno_text(errno)));
        ids_.push_back(st.st_ino);
        directories_.push_back(std::move(directory));
        paths_.push_back(std::move(path));
    }
}

std::vector<pid_t> CgroupTarget::members() const
{
    std::set<pid_t> members;
    for (const Fd& directory : directories_)
        walk(directory.get(), {}, [&](const Visited& at) {
            add_members(at.cgroup, members);
            return true;
        });
    return {members.begin(), members.end()};
}

bool CgroupTarget::is_removed() const
{
    return std::ranges::all_of(
        directories_, [](const Fd& directory) { return faccessat(directory.get(), "cgroup.procs", F_OK, 0) != 0; });
}

} // namespace gpusnoop
