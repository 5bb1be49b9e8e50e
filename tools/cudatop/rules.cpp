// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/rules.hpp"

#include "base/text.hpp"
#include "bpf/shared/call.h"
#include "gpu/driver_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

using Found = std::optional<Finding>;

// Rates are looked at once they cover this long.
constexpr double settled_seconds = 0.9;

double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double per_second(uint64_t count, const Signs& signs)
{
    return signs.seconds > 0 ? static_cast<double>(count) / signs.seconds : 0;
}

// "2.4 s", "48 s", "12 min", "3.5 h"
std::string time_text(double seconds)
{
    if (seconds < 10)
        return fmt::format("{:.1f} s", seconds);
    if (seconds < 120)
        return fmt::format("{:.0f} s", seconds);
    return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

template<Calls calls>
Found fails(const Signs& signs)
{
    constexpr double most = 50;
    constexpr std::string_view names[] = {"launches",
                                          "captures and instantiations of graphs",
                                          "copies",
                                          "waits",
                                          "allocations and frees",
                                          "calls into the driver"};
    static_assert(std::size(names) == static_cast<size_t>(Calls::count));
    const Failing& of = signs.of(calls);
    if (!of.failed)
        return {};
    const std::string_view what = names[static_cast<size_t>(calls)];
    const std::string how_many = of.failed >= of.calls ? fmt::format("all {} {} fail", of.calls, what)
                                                       : fmt::format("{} of {} {} fail", of.failed, of.calls, what);
    return Finding{percent(of.failed, of.calls) >= most ? Severity::alarm : Severity::warning,
                   fmt::format("{}: {}{}", how_many, of.error,
                               of.seconds >= window_seconds ? fmt::format(" (for {})", time_text(of.seconds)) : "")};
}

Found hangs(const Signs& signs)
{
    constexpr double waits = 2, hangs = 10;
    if (!signs.wait || !signs.idle_since || !signs.suspension.empty())
        return {};
    const double seconds = signs.wait->seconds - signs.suspended_seconds;
    if (seconds < waits)
        return {};
    std::string words =
        signs.wait->earlier
            ? fmt::format("waits for {} since before tracing began, more than {}, launched nothing "
                          "meanwhile",
                          signs.wait->what, time_text(seconds))
            : fmt::format("has waited {} for {}, launched nothing since", time_text(seconds), signs.wait->what);
    if (signs.suspended_seconds > 0)
        words += fmt::format("; {} more it was stopped or frozen", time_text(signs.suspended_seconds));
    if (signs.has_nccl)
        words += "; NCCL runs in it: ncclwait --ras tells which rank is behind";
    return Finding{seconds >= hangs ? Severity::alarm : Severity::warning, std::move(words)};
}

Found stopped(const Signs& signs)
{
    constexpr double waits = 2;
    if (!signs.wait || signs.suspension.empty() || !signs.idle_since || signs.wait->seconds < waits)
        return {};
    return Finding{Severity::warning,
                   fmt::format("is {}, in a wait for {} that began {} ago{}", signs.suspension, signs.wait->what,
                               time_text(signs.wait->seconds), signs.wait->earlier ? " or earlier" : "")};
}

Found stuck(const Signs& signs)
{
    constexpr double slow = 2, hangs = 10;
    if (!signs.stuck || signs.stuck->seconds < slow)
        return {};
    return Finding{signs.stuck->seconds >= hangs ? Severity::alarm : Severity::warning,
                   fmt::format("in {} for over {}", signs.stuck->what, time_text(signs.stuck->seconds))};
}

Found driver_call(const Signs& signs)
{
    constexpr double slow = 2, hangs = 10;
    if (!signs.driver_call || signs.driver_call->seconds < slow)
        return {};
    return Finding{signs.driver_call->seconds >= hangs ? Severity::alarm : Severity::warning,
                   fmt::format("has been in a call into the driver for {}: {}", time_text(signs.driver_call->seconds),
                               signs.driver_call->what)};
}

Found gpu_error(const Signs& signs)
{
    if (!signs.xid)
        return {};
    const std::optional<Xid> known = gpusnoop::xid(*signs.xid);
    return Finding{Severity::alarm, fmt::format("had an error of its GPU, Xid {}{}", *signs.xid,
                                                known ? fmt::format(": {}", known->meaning) : "")};
}

Found refused(const Signs& signs)
{
    constexpr double most = 50;
    if (!signs.refused)
        return {};
    return Finding{percent(signs.refused, signs.allocations) >= most ? Severity::alarm : Severity::warning,
                   fmt::format("{} of {} allocations refused, the last of {}: OUT_OF_MEMORY", signs.refused,
                               signs.allocations, human_bytes(signs.refused_bytes))};
}

Found grows(const Signs& signs)
{
    constexpr double long_enough = 1.8, per_second_least = 1 << 20, soon = 600, very_soon = 120;
    const double rate = signs.seconds > 0 ? static_cast<double>(signs.grown_bytes) / signs.seconds : 0;
    if (signs.frees || signs.growing_seconds < long_enough || rate < per_second_least)
        return {};
    Finding finding{Severity::note, fmt::format("grows by {}/s of device memory, and frees none",
                                                human_bytes(static_cast<uint64_t>(rate)))};
    if (signs.growing_seconds >= 10)
        finding.severity = Severity::warning; // a model that is loaded is there by then, or never mind
    if (signs.free_bytes) {
        const double full = static_cast<double>(*signs.free_bytes) / rate;
        if (full < soon)
            finding.severity = full < very_soon ? Severity::alarm : Severity::warning;
        finding.words += fmt::format(": GPU {} is full in {}", signs.free_gpu, time_text(full));
    }
    return finding;
}

Found copies(const Signs& signs)
{
    constexpr double most = 90;
    if (!copies_are_small(signs))
        return {};
    const double waiting = percent(signs.synchronous, signs.copies);
    return Finding{waiting >= most ? Severity::warning : Severity::note,
                   fmt::format("copies {:.0f} times/s, {:.0f}% of them smaller than 64K, {:.0f}% synchronous{}",
                               per_second(signs.copies, signs), percent(signs.small_copies, signs.copies), waiting,
                               signs.copied_from.empty() ? "" : ", from " + signs.copied_from)};
}

Found polls(const Signs& signs)
{
    constexpr double often = 5000, much = 50;
    if (signs.seconds < settled_seconds || per_second(signs.polls, signs) < often)
        return {};
    const bool burns = signs.cpu_percent >= much;
    return Finding{burns ? Severity::warning : Severity::note,
                   fmt::format("asks {:.0f} times/s whether work is done{}", per_second(signs.polls, signs),
                               burns ? fmt::format(", and uses {:.0f}% of a CPU", signs.cpu_percent) : "")};
}

Found spins(const Signs& signs)
{
    constexpr double much = 80;
    if (signs.seconds < settled_seconds || signs.waiting_percent < much || signs.cpu_percent < much)
        return {};
    return Finding{Severity::note, fmt::format("waits {:.0f}% of the time, and spins meanwhile: {:.0f}% of a CPU",
                                               signs.waiting_percent, signs.cpu_percent)};
}

Found starves(const Signs& signs)
{
    constexpr double much = 30, most = 60;
    if (signs.seconds < settled_seconds || signs.starving_percent < much)
        return {};
    std::string words =
        fmt::format("a thread that calls CUDA waits {:.0f}% of its time for a CPU", signs.starving_percent);
    if (signs.load)
        words += fmt::format(": {:.0f} threads run or could run on {:.0f} CPUs", signs.load->running, signs.load->cpus);
    if (signs.cpus && (!signs.load || signs.cpus < signs.load->cpus))
        words += fmt::format("; the process may use {} of them", signs.cpus);
    return Finding{signs.starving_percent >= most ? Severity::warning : Severity::note, std::move(words)};
}

// Without NVML nobody knows whether the GPU has work left from before.
Found idles(const Signs& signs)
{
    constexpr double long_enough = 2.8, often = 10, much = 60, busy = 20;
    if (signs.seconds < long_enough || per_second(signs.launches, signs) < often || signs.off_cpu_percent < much ||
        signs.gpu_percent.value_or(100) >= busy)
        return {};
    return Finding{
        Severity::note,
        fmt::format("leaves its GPU idle, which is busy {:.0f}% of the time: the thread that launches sleeps "
                    "or is blocked {:.0f}% of its time, and not in waits for the GPU",
                    *signs.gpu_percent, signs.off_cpu_percent)};
}

Found captures(const Signs& signs)
{
    constexpr double long_enough = 1.8, often = 2;
    const double captured = per_second(signs.captures, signs), instantiated = per_second(signs.instantiations, signs);
    if (signs.capturing_seconds < long_enough || std::max(captured, instantiated) < often)
        return {};
    const std::string does =
        !signs.captures ? fmt::format("instantiates graphs {:.1f} times/s", instantiated)
        : !signs.instantiations
            ? fmt::format("captures graphs {:.1f} times/s", captured)
            : fmt::format("captures graphs {:.1f} times/s, instantiates {:.1f}/s (re-capture storm)", captured,
                          instantiated);
    return Finding{Severity::warning,
                   fmt::format("{}: {:.0f} launches/s are recorded, {:.0f}/s are made", does,
                               per_second(signs.captured, signs), per_second(signs.launches, signs))};
}

Found launches(const Signs& signs)
{
    constexpr double much = 60;
    if (signs.seconds < settled_seconds || signs.launching_percent < much)
        return {};
    return Finding{Severity::warning,
                   fmt::format("is bound by launches: a thread spends {:.0f}% of its time in launch calls, {:.0f}/s",
                               signs.launching_percent, per_second(signs.launches, signs))};
}

Found few_blocks(const Signs& signs)
{
    constexpr double long_enough = 2.8;
    if (signs.small_seconds < long_enough || !are_small(signs.small_grids, signs.grids, signs.seconds))
        return {};
    return Finding{Severity::note,
                   fmt::format("{:.0f}% of {:.0f} launches/s are of fewer than {} blocks, too few to fill a GPU",
                               percent(signs.small_grids, signs.grids), per_second(signs.grids, signs), FEW_BLOCKS)};
}

Found shares(const Signs& signs)
{
    constexpr double most = 80;
    if (signs.seconds < settled_seconds || !signs.launches || !signs.neighbour || signs.neighbour->percent < most)
        return {};
    return Finding{Severity::note, fmt::format("shares GPU {} with {}, which makes {:.0f}% of the launches there",
                                               signs.neighbour->gpu, signs.neighbour->name, signs.neighbour->percent)};
}

Found fails_in_driver(const Signs& signs)
{
    Found found = fails<Calls::driver>(signs);
    if (found && found->severity == Severity::warning)
        found->severity = Severity::note; // the driver's libraries ask for much that a driver does not have
    return found;
}

Found restarts(const Signs& signs)
{
    if (!signs.restarts)
        return {};
    const auto& [starts, seconds, last_error] = *signs.restarts;
    return Finding{last_error.empty() ? Severity::note : Severity::alarm,
                   fmt::format("restart loop: {} starts in {}{}", starts, time_text(seconds),
                               last_error.empty() ? "" : "; last error: " + last_error)};
}

// Of equal severity, the first comes first.
constexpr Rule table[] = {
    {"xid", "the driver reported an error of the GPU (Xid) for the process", "nvioctl --xid", gpu_error, true},
    {"hangs", "a wait goes on for 2 s (a warning) or 10 s, and no thread of the process has launched anything since",
     "cudasync -p PID -U", hangs},
    {"stopped",
     "a wait goes on for 2 s, and its thread is stopped by a signal or a debugger, or frozen with its cgroup",
     "grep -E '^(State|TracerPid)' /proc/PID/status", stopped},
    {"stuck", "a call of the API that is no wait goes on for 2 s (a warning) or 10 s", "cudagap -p PID --why", stuck},
    {"driver", "a call into the driver goes on for 2 s (a warning) or 10 s", "nvioctl -p PID", driver_call},
    {"launch", "launches fail; known with --latency", "cudalaunch -p PID -x", fails<Calls::launches>, true},
    {"wait", "waits fail: what went wrong on the GPU is mostly told by them", "cudasync -p PID -x", fails<Calls::waits>,
     true},
    {"graph", "captures or instantiations of graphs fail", "cudagraph -p PID -x", fails<Calls::graphs>, true},
    {"copy", "copies fail; without --latency those alone that wait", "cudamemcpy -p PID -x", fails<Calls::copies>,
     true},
    {"refused", "allocations fail for want of memory", "gpualloc -p PID -x", refused, true},
    {"memory", "allocations or frees fail otherwise", "gpualloc -p PID -x", fails<Calls::memory>, true},
    {"ioctl", "calls into the driver fail, by the driver's own word", "nvioctl -p PID -x", fails_in_driver},
    {"restarts",
     "processes of one name in one container, service or cgroup end and are started again: 3 starts or more in 60 s "
     "(an alarm where calls fail in them)",
     "cudatop --why -d 60s", restarts, false, true},
    {"grows",
     "device memory grows by 1M/s or more, and nothing is freed, for 2 s and two reports (a warning from 10 s on, or "
     "where the GPU is full within 10 min)",
     "gpualloc -p PID --leaks", grows},
    {"copies", "500 copies/s or more, 90% of them smaller than 64K (a warning where 90% are synchronous)",
     "cudamemcpy -p PID -U", copies},
    {"polls", "5000 questions/s or more whether work is done (a warning where they cost half a CPU)",
     "cudasync -p PID -U", polls},
    {"starves",
     "a thread that calls CUDA is ready to run for 30% of its time (a warning: 60%) and has no CPU: others have them, "
     "or its cgroup's quota is used up",
     "cudagap -p PID --why", starves},
    {"idle",
     "the thread that launches most, of 10 launches/s or more, sleeps or is blocked for 60% of its time, outside of "
     "waits for the GPU, and by NVML its GPUs are busy for less than 20%, for 3 s",
     "cudagap -p PID --why", idles},
    {"captures", "2 graphs/s or more are captured or instantiated, for 2 s and two reports",
     "cudagraph -p PID --storms", captures},
    {"launches", "a thread spends 60% of its time in launch calls; known with --latency", "cudalaunch -p PID -l",
     launches},
    {"blocks", "100 launches/s or more, 90% of them of fewer than 32 blocks, for 3 s; where the grid is in registers",
     "cudalaunch -p PID", few_blocks},
    {"spins", "a thread waits for 80% of its time, and the process uses 80% of a CPU", "cudasync -p PID -U", spins},
    {"shares", "another process on the same GPU makes 80% of the launches there; known by NVML or the device files",
     "cudatop --by device", shares},
};

} // namespace

bool copies_are_small(const Signs& signs)
{
    constexpr double often = 500, most = 90;
    return signs.seconds >= settled_seconds && per_second(signs.copies, signs) >= often &&
           percent(signs.small_copies, signs.copies) >= most;
}

bool are_small(uint64_t small_grids, uint64_t grids, double seconds)
{
    constexpr double often = 100, most = 90;
    return seconds > 0 && static_cast<double>(grids) / seconds >= often && percent(small_grids, grids) >= most;
}

std::span<const Rule> rules()
{
    return table;
}

std::string_view severity_name(Severity severity)
{
    constexpr std::array<std::string_view, 4> names = {"none", "note", "warning", "alarm"};
    return names[static_cast<size_t>(severity)];
}

std::string_view severity_mark(Severity severity)
{
    constexpr std::array<std::string_view, 4> marks = {"", ".", "!", "!!"};
    return marks[static_cast<size_t>(severity)];
}

} // namespace gpusnoop
