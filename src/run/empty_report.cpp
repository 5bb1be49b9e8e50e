// SPDX-License-Identifier: Apache-2.0
#include "run/empty_report.hpp"

#include <cmath>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

// Two digits or more: "250 ms", "2.5 s", "90 s".
std::string length_text(std::chrono::nanoseconds length)
{
    const double seconds = std::chrono::duration<double>(length).count();
    if (seconds < 1)
        return fmt::format("{:.0f} ms", seconds * 1e3);
    return fmt::format("{} s", seconds < 10 ? std::round(seconds * 10) / 10 : std::round(seconds));
}

// "processes 1, 2 and 3"
std::string processes_text(const std::vector<pid_t>& pids)
{
    constexpr size_t named_max = 4;
    if (pids.size() > named_max)
        return fmt::format("{} processes", pids.size());
    std::string text = fmt::format("process{} {}", pids.size() == 1 ? "" : "es", pids.front());
    for (size_t i = 1; i < pids.size(); i++)
        text += fmt::format("{}{}", i + 1 == pids.size() ? " and " : ", ", pids[i]);
    return text;
}

std::string whose(const EmptyReport& report, const Options& options)
{
    std::string text;
    if (!options.program.empty())
        text = " by the program that was started";
    else if (options.tid)
        text = fmt::format(" by thread {}", options.tid);
    else if (!options.pids.empty())
        text = " by " + processes_text(options.pids);
    if (!options.comm.empty())
        text += fmt::format("{} whose name contains '{}'", text.empty() ? " by a process or thread" : ", of a thread",
                            options.comm);
    if (!report.cgroup.empty())
        text += " in cgroup " + report.cgroup;
    return text;
}

// Why that may be.
std::string reason(const EmptyReport& report, const Options& options)
{
    if (report.driver_missing && !report.users)
        return "; no GPU driver is loaded";
    if (!report.users)
        return {};
    const size_t users = *report.users;
    const std::string unreadable =
        report.unreadable_files == 0 ? ""
        : report.unreadable_files == 1
            ? "; a CUDA library cannot be read (see the warning)"
            : fmt::format("; {} CUDA libraries cannot be read (see the warnings)", report.unreadable_files);
    if (options.program.empty() && (options.tid || options.pids.size() == 1)) {
        const std::string_view it = options.tid ? "its process" : "it";
        return report.target_ended  ? fmt::format("; {} has ended", it)
               : users              ? std::string()
               : unreadable.empty() ? fmt::format("; {} maps no CUDA driver", it)
                                    : unreadable;
    }
    const std::string_view of = !options.program.empty() || !report.cgroup.empty() ? " of its processes"
                                : options.pids.size() > 1 || report.named_alone    ? " of them"
                                                                                   : "";
    if (users == 0 && !unreadable.empty())
        return unreadable;
    if (users == 0 && report.some_unreadable)
        return "; none of the processes that can be looked at maps CUDA";
    if (users == 0)
        return of.empty() ? "; no process maps CUDA" : fmt::format("; none{} maps CUDA", of);
    const std::string_view what = !of.empty() ? of : users == 1 ? " process" : " processes";
    return fmt::format("; {}{} map{} CUDA{}", users, what, users == 1 ? "s" : "",
                       options.verbosity ? ""
                       : users == 1      ? "; -v names it"
                                         : "; -v lists them");
}

} // namespace

std::string sentence(const EmptyReport& report, const Options& options)
{
    return fmt::format("no {}{} in {}{}", report.one, whose(report, options), length_text(report.length),
                       reason(report, options));
}

} // namespace gpusnoop
