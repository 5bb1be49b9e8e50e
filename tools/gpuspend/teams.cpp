// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/teams.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "tools/gpuspend/prices.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fnmatch.h>

namespace gpusnoop {
namespace {

constexpr size_t max_teams = 4096;
constexpr size_t label_kind = 3;
constexpr std::array<std::string_view, 8> kinds = {"namespace", "pod",  "container", "label",
                                                   "cgroup",    "user", "unit",      "job"};

std::string value(size_t kind, const Owner& owner, const std::string& user)
{
    switch (kind) {
    case 0:
        return owner.names.pod_namespace;
    case 1:
        return owner.names.pod.empty() ? std::string() : owner.pod_name();
    case 2:
        return owner.where.named_by_user ? std::string() : owner.container_name();
    case 4:
        return owner.cgroup;
    case 5:
        return user;
    case 6:
        return owner.where.named_by_user ? std::string() : owner.where.unit;
    default:
        return owner.where.slurm_job;
    }
}

bool matches(const std::string& glob, const std::string& text)
{
    return !text.empty() && fnmatch(glob.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
}

} // namespace

Teams Teams::of_file(const std::string& path)
{
    return {read_list("teams (--teams)", path), path};
}

Teams::Teams(std::string_view text, const std::string& file)
{
    size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view text_and_comment = next_part(rest, '\n');
        const std::string_view line = trimmed(next_part(text_and_comment, '#'));
        number++;
        if (line.empty())
            continue;
        const size_t first = std::min(line.find(','), line.size());
        const size_t second = std::min(line.find(',', std::min(first + 1, line.size())), line.size());
        const std::string_view team = trimmed(line.substr(0, first));
        const std::string_view kind = first < second ? trimmed(line.substr(first + 1, second - first - 1)) : "";
        const std::string_view glob = second < line.size() ? trimmed(line.substr(second + 1)) : "";
        const auto found = std::ranges::find(kinds, kind);
        if (team.empty() || glob.empty() || found == kinds.end() ||
            (*found == kinds[label_kind] && glob.find('=') == std::string_view::npos))
            throw Error(
                fmt::format("'{}', line {} does not assign a team: '{}'", file, number, printable(line.substr(0, 200))),
                fmt::format("a line is TEAM,KIND,GLOB with a KIND of {}", joined(kinds, ", ")));
        if (rows_.size() == max_teams)
            throw Error(fmt::format("'{}', line {}: there are more than {} lines of teams", file, number, max_teams));
        rows_.push_back({std::string(team), std::string(glob), static_cast<size_t>(found - kinds.begin())});
    }
    if (rows_.empty())
        throw Error(fmt::format("'{}' contains no teams", file), "a line is TEAM,KIND,GLOB");
}

const std::string& Teams::of(const Owner& owner, const std::string& user) const
{
    static const std::string none;
    for (const Row& row : rows_)
        if (row.kind == label_kind
                ? std::ranges::any_of(owner.names.labels, [&](const auto& label) { return matches(row.glob, label); })
                : matches(row.glob, value(row.kind, owner, user)))
            return row.team;
    return none;
}

} // namespace gpusnoop
