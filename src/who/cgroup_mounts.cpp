// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_mounts.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace gpusnoop {
namespace {

constexpr std::pair<std::string_view, cgroup_controller> controllers[] = {
    {"memory", CONTROLLER_MEMORY}, {"pids", CONTROLLER_PIDS},       {"devices", CONTROLLER_DEVICES},
    {"cpu", CONTROLLER_CPU},       {"cpuacct", CONTROLLER_CPUACCT}, {"freezer", CONTROLLER_FREEZER},
    {"blkio", CONTROLLER_IO},      {"cpuset", CONTROLLER_CPUSET},
};

// mountinfo escapes spaces, tabs, newlines and backslashes as octal \ooo.
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

// Returns the controller of a v1 hierarchy, given its mount options. If the hierarchy has several controllers, returns
// the one that comes first in `controllers`.
cgroup_controller controller_among(const std::string& options)
{
    std::set<std::string, std::less<>> words;
    std::istringstream list(options);
    for (std::string word; std::getline(list, word, ',');)
        words.insert(word);
    const auto* const found =
        std::ranges::find_if(controllers, [&](const auto& controller) { return words.contains(controller.first); });
    return found == std::end(controllers) ? CONTROLLER_NONE : found->second;
}

// Parses a line such as: 35 24 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory
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
    const bool v2 = type == "cgroup2";
    return CgroupMount{unescape(point), unescape(root), v2, v2 ? CONTROLLER_NONE : controller_among(options)};
}

// Returns the part of a path that users control. path: as in /proc/PID/cgroup. If a directory of the path does not
// exist, all names below it count as chosen by an unknown user.
Delegation delegation_of(std::string_view path, const CgroupMount& mount)
{
    const size_t above = mount.root == "/" ? 0 : mount.root.size(); // length of the prefix that mount.path replaces
    if ((above && !path.starts_with(mount.root)) || path.substr(above).starts_with("/.."))
        return {};
    for (size_t end = above;; end = std::min(path.find('/', end + 1), path.size())) {
        struct stat st {};
        const bool exists = stat(fmt::format("{}{}", mount.path, path.substr(above, end - above)).c_str(), &st) == 0;
        if (!exists)
            return {.from = end, .uid = std::nullopt};
        if (const Delegation delegation = delegation_by(st, end); delegation.from == end || end == path.size())
            return delegation;
    }
}

} // namespace

bool is_below(const std::string& path, const std::string& folder)
{
    return folder == "/" || path == folder || path.starts_with(folder + "/");
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, const std::string& host_root)
{
    std::vector<CgroupMount> mounts;
    std::istringstream lines{std::string(mountinfo)};
    for (std::string line; std::getline(lines, line);) {
        auto mount = parse_mount(line);
        if (!mount || !is_below(mount->path, host_root))
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
    // Without cgroup mounts below host_root, uses all mounts of this process, which show the same hierarchies.
    return mounts.empty() ? parse_cgroup_mounts(text, "/") : mounts;
}

cgroup_controller v1_controller(const std::vector<CgroupMount>& mounts)
{
    for (const CgroupMount& mount : mounts)
        if (mount.controller != CONTROLLER_NONE)
            return mount.controller;
    return CONTROLLER_NONE;
}

// True if the host runs Kubernetes pods. Checks only mounts of a hierarchy's root. Inside a container, another cgroup
// may be mounted, for example that of a Kubernetes node that is itself a container. The pods of such a node are not the
// host's.
bool has_pods(const std::vector<CgroupMount>& mounts)
{
    const auto has = [](const CgroupMount& mount, const char* name) {
        struct stat st {};
        return stat((mount.path + name).c_str(), &st) == 0;
    };
    return std::ranges::any_of(mounts, [&](const CgroupMount& mount) {
        const bool is_root = mount.v2 ? !has(mount, "/cgroup.events") : has(mount, "/release_agent");
        return is_root && (has(mount, "/kubepods.slice") || has(mount, "/kubepods"));
    });
}

Delegation delegation_by(const struct stat& cgroup, size_t from)
{
    if (cgroup.st_uid != 0)
        return {.from = from, .uid = cgroup.st_uid};
    return (cgroup.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? Delegation{.from = from, .uid = std::nullopt} : Delegation{};
}

ProcessCgroups cgroups_of(std::string_view lines, const std::vector<CgroupMount>& mounts)
{
    ProcessCgroups found;
    const bool nodes = !has_pods(mounts);
    std::istringstream all{std::string(lines)};
    for (std::string line; std::getline(all, line);) {
        const size_t controllers_at = line.find(':') + 1, path_at = line.find(':', controllers_at) + 1;
        if (controllers_at == 0 || path_at == 0)
            continue;
        const std::string names = line.substr(controllers_at, path_at - 1 - controllers_at);
        const bool v2 = names.empty();
        const cgroup_controller controller = v2 ? CONTROLLER_NONE : controller_among(names);
        const auto mount = std::ranges::find_if(
            mounts, [&](const CgroupMount& of) { return of.v2 == v2 && of.controller == controller; });
        CgroupPlace place{.path = line.substr(path_at), .owner = {}};
        Delegation delegation = mount == mounts.end() ? Delegation() : delegation_of(place.path, *mount);
        delegation.nodes = nodes;
        place.owner = parse_cgroup_path(place.path, delegation);
        if (v2)
            found.v2 = std::move(place);
        else
            found.v1.push_back(std::move(place));
    }
    return found;
}

} // namespace gpusnoop
