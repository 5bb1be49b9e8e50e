// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/cells.hpp"

#include "tools/cudatop/row_gpus.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace gpusnoop::cudatop {
namespace {

// True for a container, pod, Slurm job or system service; false for a login session's cgroup.
bool is_informative(const Owner& owner)
{
    const std::string& unit = owner.where.unit;
    return owner.container() || !owner.pod_name().empty() || !owner.where.slurm_job.empty() ||
           (unit.ends_with(".service") && !unit.starts_with("user@"));
}

// "/usr/bin/python3 train.py" -> "python3 train.py"
std::string_view without_folder(std::string_view command_line)
{
    const size_t slash = command_line.substr(0, command_line.find(' ')).rfind('/');
    return slash == std::string_view::npos ? command_line : command_line.substr(slash + 1);
}

uint64_t held(const Group& g)
{
    return g.memory ? g.memory->device().bytes_held() : 0;
}

const XidsOf* xids_of(const Group& g, const Context& c)
{
    for (const ImageId& image : g.who.images)
        if (const auto found = c.xids.find(image.pid); found != c.xids.end())
            return &found->second;
    return nullptr;
}

// "0:42", "12:05", "3:00:00"
std::string clock_text(uint64_t seconds)
{
    const uint64_t minutes = seconds / 60;
    return minutes < 60 ? fmt::format("{}:{:02}", minutes, seconds % 60)
                        : fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, seconds % 60);
}

} // namespace

bool whole_processes(const Context& c)
{
    return c.settings.rows.of_processes() && !c.settings.rows.device;
}

uint64_t bytes(const Group& g, std::initializer_list<direction> directions)
{
    uint64_t all = 0;
    for (const direction d : directions)
        all += g.copies[d] ? g.copies[d]->bytes : 0;
    return all;
}

Cell count_if(bool known, uint64_t n)
{
    return known ? Cell(n) : Cell();
}

Cell rate_if(bool known, uint64_t n, const Context& c)
{
    return known ? per_second(n, c) : Cell();
}

Cell bytes_per_second(uint64_t n, const Context& c)
{
    if (!c.known.copies)
        return {};
    return static_cast<uint64_t>(static_cast<double>(n) / c.seconds);
}

Cell share_of_time(const WaitGroup* group, const Context& c, std::optional<uint64_t> ns)
{
    if (!c.known.waits || !ns)
        return {};
    if (!group || group->threads.empty())
        return 0.0;
    return share(*ns, static_cast<uint64_t>(c.seconds * 1e9) * group->threads.size());
}

Cell scheduling(const Group& g, const Context& c, double Diagnosis::Scheduling::*part)
{
    const auto all = c.diagnosis.scheduling(g.who.images);
    return all ? Cell((*all).*part) : Cell();
}

std::optional<uint64_t> spinning_ns(const Group& g, const Context& c)
{
    return g.waits ? c.diagnosis.spinning_ns(g.waits->threads) : std::optional<uint64_t>(0);
}

std::optional<uint64_t> asleep_ns(const Group& g, const Context& c)
{
    const auto spinning = spinning_ns(g, c);
    const uint64_t all = of(g.waits, &WaitGroup::total_ns);
    return spinning ? std::optional(all - std::min(all, *spinning)) : std::nullopt;
}

Cell pod_or_command(const Group& g, const Context& c)
{
    if (!g.who.owners.empty() && std::ranges::all_of(g.who.owners, [](const Owner* of) { return is_informative(*of); }))
        if (Cell owner = owner_cell(g.who, OwnerPart::text); !std::holds_alternative<std::monostate>(owner))
            return owner;
    const Cell command = command_line_cell(g.who, c.processes);
    const auto* text = std::get_if<std::string>(&command);
    return text ? Cell(std::string(without_folder(*text))) : Cell();
}

Cell small_share(const Group& g, const Context& c)
{
    if (!c.known.copies)
        return {};
    const uint64_t all = sum<CopyGroup>(g.copies, &CopyGroup::copies);
    return share(sum<CopyGroup>(g.copies, &CopyGroup::small), all - sum<CopyGroup>(g.copies, &CopyGroup::unsized));
}

uint64_t errors(const Group& g)
{
    return of(g.launches, &LaunchGroup::errors) + sum<CopyGroup>(g.copies, &CopyGroup::errors) +
           of(g.waits, &WaitGroup::errors) - g.double_counted + of(g.polls, &WaitGroup::errors) +
           of(g.memory, &AllocationGroup::failures) + of(g.graphs, &GraphGroup::errors) +
           of(g.driver, &DriverGroup::errors);
}

std::optional<uint64_t> graph_kernels(const Group& g, const Context& c)
{
    const uint64_t kernels = of(g.launches, &LaunchGroup::graph_kernels);
    if (!c.known.graphs || (!kernels && of(g.launches, &LaunchGroup::graphs_unknown)))
        return std::nullopt;
    return kernels;
}

Cell graph_kernels_per_second(const Group& g, const Context& c)
{
    const auto kernels = graph_kernels(g, c);
    return kernels ? per_second(*kernels, c) : Cell();
}

Cell traced_memory(const Group& g, const Context& c)
{
    if (!c.known.memory)
        return {};
    return c.processes.any_began_before_tracing(g.who.images) ? Cell(AtLeast{held(g)}) : Cell(held(g));
}

Cell memory(const Key& k, const Group& g, const Context& c)
{
    const auto by_driver = memory_by_driver(k, g, c);
    return by_driver ? Cell(*by_driver) : traced_memory(g, c);
}

Cell memory_source(const Key& k, const Group& g, const Context& c)
{
    if (memory_by_driver(k, g, c))
        return text_if_any(driver_memory_source(g, c));
    return c.known.memory ? Cell(std::string("traced")) : Cell();
}

std::optional<double> full_in_seconds(const Group& g, const Context& c)
{
    constexpr double year = 365 * 24 * 3600;
    const auto seconds = c.diagnosis.full_in_seconds(g.who.images);
    return seconds && *seconds < year ? seconds : std::nullopt;
}

Cell last_xid(const Group& g, const Context& c)
{
    const XidsOf* xids = xids_of(g, c);
    return xids ? Cell(uint64_t{xids->last}) : Cell();
}

Cell xids(const Group& g, const Context& c)
{
    std::set<uint32_t> pids; // a set, because a pid has several images after exec
    for (const ImageId& image : g.who.images)
        pids.insert(image.pid);
    uint64_t count = 0;
    for (const uint32_t pid : pids)
        if (const auto found = c.xids.find(pid); found != c.xids.end())
            count += found->second.count;
    return c.xid ? Cell(count) : Cell();
}

Cell clock_cell(std::optional<double> seconds)
{
    return seconds ? Cell(clock_text(static_cast<uint64_t>(*seconds))) : Cell();
}

Cell trouble(const Key& k, const Group& g, const Context& c)
{
    const Verdict* verdict = worst(c.diagnosis, k, g);
    return verdict ? Cell(std::string(verdict->rule->name)) : Cell();
}

Cell marked_trouble(const Key& k, const Group& g, const Context& c)
{
    const Verdict* verdict = worst(c.diagnosis, k, g);
    return verdict ? Cell(fmt::format("{}{}", severity_mark(verdict->severity), verdict->rule->name)) : Cell();
}

Cell severity(const Key& k, const Group& g, const Context& c)
{
    const Verdict* verdict = worst(c.diagnosis, k, g);
    return verdict ? Cell(std::string(severity_name(verdict->severity))) : Cell();
}

Cell user(const Group& g, const Context& c)
{
    const Cell pid = pid_cell(g.who);
    const auto* number = std::get_if<uint64_t>(&pid);
    return cell_if(number ? c.users.of(static_cast<pid_t>(*number)) : std::nullopt);
}

} // namespace gpusnoop::cudatop
