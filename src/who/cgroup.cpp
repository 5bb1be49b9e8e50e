// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup.hpp"

#include "util/error.hpp"
#include "util/options.hpp"
#include "util/read_text.hpp"
#include "who/containers.hpp"
#include "who/cuda_hints.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace gpusnoop {
namespace {

constexpr long v2_magic = 0x63677270; // CGROUP2_SUPER_MAGIC
constexpr long v1_magic = 0x27e0eb;   // CGROUP_SUPER_MAGIC
constexpr size_t shortest_id = 4;

constexpr std::pair<std::string_view, cgroup_controller> controllers[] = {
    {"memory", CONTROLLER_MEMORY}, {"pids", CONTROLLER_PIDS},       {"devices", CONTROLLER_DEVICES},
    {"cpu", CONTROLLER_CPU},       {"cpuacct", CONTROLLER_CPUACCT}, {"freezer", CONTROLLER_FREEZER},
    {"blkio", CONTROLLER_IO},      {"cpuset", CONTROLLER_CPUSET},
};

// Spaces, tabs, newlines and backslashes are \ooo in mountinfo.
std::string unescape(std::string_view text)
{
    std::string plain;
    for (size_t i = 0; i < text.size(); i++) {
        unsigned code = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
            plain += static_cast<char>(code);
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// 35 24 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory
std::optional<CgroupMount> parse_mount(const std::string& line)
{
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos)
        return std::nullopt;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    if (!(before >> id >> parent >> device >> root >> point) || !(after >> type >> source >> options))
        return std::nullopt;
    if (type != "cgroup" && type != "cgroup2")
        return std::nullopt;
    CgroupMount mount{unescape(point), unescape(root), type == "cgroup2", CONTROLLER_NONE};
    std::set<std::string> words;
    std::istringstream list(options);
    for (std::string word; std::getline(list, word, ',');)
        words.insert(word);
    for (const auto& [name, controller] : controllers)
        if (!mount.v2 && mount.controller == CONTROLLER_NONE && words.contains(std::string(name)))
            mount.controller = controller;
    return mount;
}

bool below(const std::string& path, const std::string& folder)
{
    return folder == "/" || path == folder || path.starts_with(folder + "/");
}

bool is_cgroup(const std::string& path)
{
    struct statfs fs {};
    struct stat st {};
    return statfs(path.c_str(), &fs) == 0 && (fs.f_type == v2_magic || fs.f_type == v1_magic) &&
           stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

// Of the hierarchy; 0 where there is no such file.
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
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(openat(cgroup, ".", O_RDONLY | O_CLOEXEC)), closedir);
    while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == DT_DIR && name != "." && name != "..")
            names.emplace_back(name);
    }
    return names;
}

// Calls visit(cgroup, path below the first one) for a cgroup and all below it, outer ones first; it says whether to go
// into this one. By descriptor: the path of a cgroup may be longer than a path may be.
template<class Visit>
void walk(int cgroup, Visit&& visit, const std::string& path = "", int depth = 0)
{
    if (!visit(cgroup, path) || depth == CGROUP_WALK_MAX)
        return;
    for (const std::string& name : children(cgroup))
        if (const Fd child(openat(cgroup, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); child)
            walk(child.get(), visit, fmt::format("{}/{}", path, name), depth + 1);
}

void add_members(int cgroup, std::set<pid_t>& members)
{
    const Fd procs(openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC));
    std::ifstream list(fmt::format("/proc/self/fd/{}", procs.get()));
    for (pid_t pid = 0; list >> pid;)
        if (pid > 0) // 0: of a pid namespace that is not below ours
            members.insert(pid);
}

std::string with_containers(std::string hint, const std::string& host_root)
{
    const std::string containers = containers_with_cuda(host_root);
    return containers.empty() ? hint : hint + "; " + containers;
}

} // namespace

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& host_root)
{
    std::vector<CgroupMount> mounts;
    std::istringstream lines{std::string(mountinfo)};
    for (std::string line; std::getline(lines, line);) {
        auto mount = parse_mount(line);
        if (!mount || !below(mount->path, host_root))
            continue;
        auto same = std::ranges::find_if(mounts, [&](const CgroupMount& other) {
            return other.v2 == mount->v2 && other.controller == mount->controller;
        });
        if (same == mounts.end())
            mounts.push_back(std::move(*mount));
        else if (same->root != "/" && mount->root == "/")
            *same = std::move(*mount);
    }
    std::ranges::stable_sort(mounts, [](const CgroupMount& a, const CgroupMount& b) {
        auto rank = [](const CgroupMount& m) {
            return m.v2 ? 0 : m.controller == CONTROLLER_NONE ? INT_MAX : static_cast<int>(m.controller);
        };
        return rank(a) < rank(b);
    });
    return mounts;
}

std::vector<CgroupMount> cgroup_mounts(const std::string& host_root)
{
    std::ifstream file("/proc/self/mountinfo");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::vector<CgroupMount> mounts = parse_cgroup_mounts(text, host_root);
    return mounts.empty() ? parse_cgroup_mounts(text, "/") : mounts; // they are the host's wherever they are mounted
}

cgroup_controller v1_controller(const std::vector<CgroupMount>& mounts)
{
    for (const CgroupMount& mount : mounts)
        if (mount.controller != CONTROLLER_NONE)
            return mount.controller;
    return CONTROLLER_NONE;
}

static pid_t first_process(int cgroup)
{
    const auto text = read_text(Fd(openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC)), 32);
    pid_t pid = 0;
    if (text)
        std::from_chars(text->data(), text->data() + text->size(), pid);
    return pid;
}

std::vector<ContainerCgroup> container_cgroups(const std::string& host_root)
{
    constexpr size_t most = 65'536; // that are looked at
    std::vector<ContainerCgroup> found;
    for (const CgroupMount& mount : cgroup_mounts(host_root)) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        size_t seen = 0;
        walk(open_folder(mount.path).get(), [&](int cgroup, const std::string& path) {
            CgroupOwner owner = parse_cgroup_path(path);
            struct stat st {};
            if (seen++ >= most || fstat(cgroup, &st) != 0)
                return false;
            const bool container = !owner.container_id.empty();
            const bool step = !container && !owner.slurm_step.empty();
            if (container || step || !owner.pod_uid.empty())
                found.push_back({st.st_ino, path, std::move(owner), step ? first_process(cgroup) : 0});
            return !container;
        });
        if (!found.empty())
            break;
    }
    return found;
}

CgroupTarget::CgroupTarget(const std::string& what, const std::string& host_root) : what_(what)
{
    constexpr std::string_view forms = "a path, a container's id or name, or pod:NAMESPACE/NAME";
    if (what.empty())
        throw UsageError(fmt::format("a cgroup (-c) is {}, not empty", forms));
    const std::vector<CgroupMount> mounts = cgroup_mounts(host_root);
    if (mounts.empty())
        throw Error(fmt::format("no cgroup hierarchy is mounted below {}", host_root),
                    "mount one (mount -t cgroup2 none /sys/fs/cgroup), or say where the host's root is: --host-root");
    if (what.starts_with("pod:")) {
        find_pod(mounts, host_root);
        return;
    }
    if (find_path(mounts) || find_container(mounts, host_root))
        return;
    throw Error(fmt::format("there is no cgroup and no container '{}'", what),
                with_containers(fmt::format("give {}; cgroups are below {}{}", forms, mounts.front().path,
                                            mounts.size() > 1 ? " and " + mounts[1].path : ""),
                                host_root));
}

bool CgroupTarget::find_path(const std::vector<CgroupMount>& mounts)
{
    std::string rest = what_;
    if (const std::string path = what_.starts_with('/') ? real_path(what_) : ""; !path.empty() && is_cgroup(path)) {
        // Whichever mount of the hierarchy it was reached through.
        const auto in =
            std::ranges::find(mounts, device_of(path), [](const CgroupMount& m) { return device_of(m.path); });
        if (in != mounts.end() && (in->v2 || in->controller != CONTROLLER_NONE)) {
            take(*in, {path});
            return true;
        }
        // systemd's own hierarchy: its cgroups have namesakes in those that the kernel side can look at.
        rest = in != mounts.end() && below(path, in->path) ? path.substr(in->path.size()) : "";
        if (rest.empty())
            throw Error(fmt::format("{} belongs to a cgroup hierarchy without a controller", what_),
                        "give the path of the same cgroup below another one, such as memory or pids");
    }
    for (const CgroupMount& mount : mounts) {
        const std::string path = real_path(mount.path + "/" + rest);
        if (!below(path, mount.path) || !is_cgroup(path) || (!mount.v2 && mount.controller == CONTROLLER_NONE))
            continue;
        take(mount, {path});
        return true;
    }
    return false;
}

void CgroupTarget::find_pod(const std::vector<CgroupMount>& mounts, const std::string& host_root)
{
    const std::string name = what_.substr(what_.find(':') + 1);
    const size_t slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() ||
        name.find('/', slash + 1) != std::string::npos)
        throw UsageError(fmt::format("a pod (-c) is pod:NAMESPACE/NAME, not '{}'", what_));
    const Containers::Pod pod = Containers(host_root).find_pod(std::string_view(name).substr(0, slash),
                                                               std::string_view(name).substr(slash + 1));
    if (pod.uids.empty() && pod.container_ids.empty())
        throw Error(fmt::format("there is no pod '{}' in namespace '{}' on this host", name.substr(slash + 1),
                                name.substr(0, slash)),
                    with_containers("list the pods on this host: ls /var/log/containers, or crictl pods", host_root));
    for (const CgroupMount& mount : mounts) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        std::vector<std::string> found;
        walk(open_folder(mount.path).get(), [&](int, const std::string& path) {
            const CgroupOwner owner = parse_cgroup_path(path);
            const bool its = pod.uids.contains(owner.pod_uid) || pod.container_ids.contains(owner.container_id);
            if (its)
                found.push_back(mount.path + path);
            return !its;
        });
        if (!found.empty())
            return take(mount, std::move(found));
    }
    throw Error(fmt::format("pod '{}' has no cgroup: it has ended, or has not started", name));
}

bool CgroupTarget::find_container(const std::vector<CgroupMount>& mounts, const std::string& host_root)
{
    const std::set<std::string> named = Containers(host_root).find_named(what_);
    const bool may_be_id =
        what_.size() >= shortest_id && what_.find_first_not_of("0123456789abcdef-") == std::string::npos;
    if (named.empty() && !may_be_id)
        return false;
    for (const CgroupMount& mount : mounts) {
        if (!mount.v2 && mount.controller == CONTROLLER_NONE)
            continue;
        std::map<std::string, std::string> found; // path by id
        walk(open_folder(mount.path).get(), [&](int, const std::string& path) {
            const std::string id = parse_cgroup_path(path).container_id;
            if (!id.empty() && (named.contains(id) || (may_be_id && id.starts_with(what_))))
                found.try_emplace(id, mount.path + path);
            return true;
        });
        if (found.size() > 1)
            throw Error(fmt::format("'{}' matches containers {} and {}", what_, found.begin()->first,
                                    std::next(found.begin())->first),
                        "give more digits of its id");
        if (!found.empty()) {
            take(mount, {found.begin()->second});
            return true;
        }
    }
    return false;
}

void CgroupTarget::take(const CgroupMount& mount, std::vector<std::string> paths)
{
    mount_ = mount;
    for (std::string& path : paths) {
        Fd directory = open_folder(path);
        struct stat st {};
        if (!directory || fstat(directory.get(), &st))
            throw Error(fmt::format("cgroup {} cannot be opened: {}", path, errno_text(errno)));
        ids_.push_back(st.st_ino);
        directories_.push_back(std::move(directory));
        paths_.push_back(std::move(path));
    }
}

std::vector<pid_t> CgroupTarget::members() const
{
    std::set<pid_t> members;
    for (const Fd& directory : directories_)
        walk(directory.get(), [&](int cgroup, const std::string&) {
            add_members(cgroup, members);
            return true;
        });
    return {members.begin(), members.end()};
}

bool CgroupTarget::gone() const
{
    return std::ranges::all_of(
        directories_, [](const Fd& directory) { return faccessat(directory.get(), "cgroup.procs", F_OK, 0) != 0; });
}

} // namespace gpusnoop
