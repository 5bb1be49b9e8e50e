// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_facts.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <climits>
#include <fcntl.h>
#include <fmt/format.h>

namespace gpusnoop {

namespace {

constexpr std::string_view pressure_files[PRESSURES] = {"cpu", "io", "memory"};

std::optional<std::string> text_of(const std::string& path)
{
    constexpr size_t max = 64 << 10;
    return read_text(path, max, O_NOFOLLOW);
}

bool has_word(std::string_view list, std::string_view word)
{
    while (!list.empty())
        if (next_part(list, ',') == word)
            return true;
    return false;
}

void add(std::optional<uint64_t>& sum, std::optional<uint64_t> more)
{
    if (more)
        sum = sum.value_or(0) + *more;
}

} // namespace

std::optional<double> parse_quota(std::string_view text)
{
    const size_t blank = text.find_first_of(" \n");
    const auto quota = leading_number<uint64_t>(text); // nullopt for "max" and -1
    const auto period =
        blank == std::string_view::npos ? std::nullopt : leading_number<uint64_t>(text.substr(blank + 1));
    if (!quota || !period || !*period)
        return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<uint64_t> parse_flat(std::string_view text, std::string_view key)
{
    while (!text.empty()) {
        const std::string_view line = next_part(text, '\n');
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
            return leading_number<uint64_t>(line.substr(key.size() + 1));
    }
    return std::nullopt;
}

std::optional<uint64_t> parse_pressure(std::string_view text)
{
    constexpr std::string_view some = "some ", total = " total=";
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t at = line.find(total);
    return line.starts_with(some) && at != std::string_view::npos
               ? leading_number<uint64_t>(line.substr(at + total.size()))
               : std::nullopt;
}

// Returns the directory of a process's cgroup in the v1 hierarchy with this controller. If the controller is
// CONTROLLER_NONE or not mounted in v1, the directory is in v2. Empty if the directory is not in a mounted part of the
// hierarchy.
std::string CgroupFiles::path(std::string_view lines, cgroup_controller controller, const CgroupMount*& mount) const
{
    const std::string_view name = controller == CONTROLLER_CPU       ? "cpu"
                                  : controller == CONTROLLER_FREEZER ? "freezer"
                                                                     : "";
    std::string_view in_v1, in_v2;
    while (!lines.empty()) {
        const std::string_view line = next_part(lines, '\n');
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos)
            continue;
        const std::string_view names = line.substr(first + 1, second - first - 1);
        if (names.empty())
            in_v2 = line.substr(second + 1);
        else if (!name.empty() && has_word(names, name))
            in_v1 = line.substr(second + 1);
    }
    const bool v2 = in_v1.empty();
    std::string_view within = v2 ? in_v2 : in_v1;
    const auto found = std::ranges::find_if(
        mounts_, [&](const CgroupMount& of) { return v2 ? of.v2 : !of.v2 && of.controller == controller; });
    if (within.empty() || found == mounts_.end() || within.starts_with("/..") || within.size() >= PATH_MAX)
        return {};
    if (found->root != "/") {
        if (!within.starts_with(found->root))
            return {};
        within.remove_prefix(found->root.size());
        if (!within.empty() && within.front() != '/') // another cgroup with the same prefix
            return {};
    }
    mount = &*found;
    return found->path + (within == "/" ? std::string() : std::string(within));
}

// Adds the quotas of a cgroup and of all cgroups above it, because each of these quotas can throttle the cgroup.
void CgroupFiles::add_quotas(std::string folder, const CgroupMount& mount, CgroupFacts& facts) const
{
    facts.throttles = facts.throttled_ns = 0;
    for (int depth = 0; depth < CGROUP_WALK_MAX && folder.size() >= mount.path.size(); depth++) {
        const std::string quota_text = mount.v2 ? text_of(folder + "/cpu.max").value_or("")
                                                : text_of(folder + "/cpu.cfs_quota_us").value_or("") +
                                                      text_of(folder + "/cpu.cfs_period_us").value_or("");
        if (const auto quota = parse_quota(quota_text)) {
            facts.quota_cpus = std::min(facts.quota_cpus.value_or(*quota), *quota);
            const std::string stat = text_of(folder + "/cpu.stat").value_or("");
            add(facts.throttles, parse_flat(stat, "nr_throttled"));
            add(facts.throttled_ns, parse_flat(stat, "throttled_time"));
            if (const auto us = parse_flat(stat, "throttled_usec"))
                add(facts.throttled_ns, *us * 1000);
        }
        folder.resize(std::min(folder.rfind('/'), folder.size()));
    }
}

std::string CgroupFiles::frozen_by(std::string_view lines) const
{
    for (const cgroup_controller controller : {CONTROLLER_NONE, CONTROLLER_FREEZER}) {
        const CgroupMount* mount = nullptr;
        const std::string own = path(lines, controller, mount);
        if (own.empty() || mount->v2 != (controller == CONTROLLER_NONE))
            continue;
        const std::string state = text_of(own + (mount->v2 ? "/cgroup.events" : "/freezer.state")).value_or("");
        if (mount->v2 ? parse_flat(state, "frozen") != 1 : !state.starts_with("FR")) // FROZEN or FREEZING, not THAWED
            continue;
        const std::string_view file = mount->v2 ? "/cgroup.freeze" : "/freezer.self_freezing";
        std::string by = own; // fallback, because the frozen ancestor may be above the mount
        std::string folder = own;
        for (int depth = 0; depth < CGROUP_WALK_MAX && folder.size() >= mount->path.size(); depth++) {
            if (text_of(fmt::format("{}{}", folder, file)).value_or("").starts_with('1')) {
                by = folder;
                break;
            }
            folder.resize(folder.rfind('/'));
        }
        const std::string below = by.substr(mount->path.size());
        return mount->root == "/" ? below : mount->root + below;
    }
    return {};
}

CgroupFacts CgroupFiles::of(std::string_view lines) const
{
    CgroupFacts facts;
    const CgroupMount* mount = nullptr;
    if (const std::string folder = path(lines, CONTROLLER_CPU, mount); !folder.empty())
        add_quotas(folder, *mount, facts);
    const auto read = [&](const std::string& folder, std::string_view suffix) {
        for (size_t of = 0; of < PRESSURES; of++)
            facts.stalled_us.at(of) =
                parse_pressure(text_of(fmt::format("{}/{}{}", folder, pressure_files[of], suffix)).value_or(""));
        return std::ranges::any_of(facts.stalled_us, [](const auto& us) { return us.has_value(); });
    };
    if (const std::string folder = path(lines, CONTROLLER_NONE, mount); folder.empty() || !read(folder, ".pressure"))
        facts.machine_wide = read("/proc/pressure", "");
    return facts;
}

std::string Suspensions::of(pid_t pid, pid_t tid) const
{
    const auto [state, tracer] = thread_state(pid, tid);
    if (state == 'T')
        return "stopped by a signal";
    if (state == 't') {
        const std::string name = tracer ? process_name(tracer).value_or("") : "";
        return "stopped by its debugger or tracer" + (name.empty() ? "" : fmt::format(", {} {}", name, tracer));
    }
    if (state != 'S' && state != 'D')
        return {};
    const std::string cgroup = cgroups_.frozen_by(cgroup_lines(pid));
    return cgroup.empty() ? std::string() : "frozen by cgroup " + cgroup;
}

} // namespace gpusnoop
