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

// A rate that is measured over a shorter time may be a burst.
constexpr double min_rate_seconds = 0.9;

double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double per_second(uint64_t count, const Signs& signs)
{
    return signs.seconds > 0 ? static_cast<double>(count) / signs.seconds : 0;
}

// "all", "none", "97%"
std::string share_text(uint64_t part, uint64_t whole)
{
    return part >= whole ? "all" : part == 0 ? "none" : fmt::format("{:.0f}%", percent(part, whole));
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

// "all 12 waits fail", "2 of 4 copies fail", "1 of 1 copies fail"
std::string failure_text(uint64_t failed, uint64_t calls, std::string_view name)
{
    return failed >= calls && calls > 1 ? fmt::format("all {} {} fail", calls, name)
                                        : fmt::format("{} of {} {} fail", failed, calls, name);
}

template<Calls calls>
Found fails(const Signs& signs)
{
    constexpr double alarm_percent = 50;
    constexpr std::string_view names[] = {
        "launches", "graph captures and instantiations", "copies", "waits", "allocations and frees", "driver calls"};
    static_assert(std::size(names) == static_cast<size_t>(Calls::count));
    const Failing& failing = signs.failures(calls);
    if (!failing.failed)
        return {};
    const std::string_view name = names[static_cast<size_t>(calls)];
    return Finding{
        percent(failing.failed, failing.calls) >= alarm_percent ? Severity::alarm : Severity::warning,
        fmt::format("{}: {}{}", failure_text(failing.failed, failing.calls, name), failing.error,
                    failing.seconds >= window_seconds ? fmt::format(" (for {})", time_text(failing.seconds)) : "")};
}

Found hangs(const Signs& signs)
{
    constexpr double min_seconds = 2, alarm_seconds = 10;
    if (!signs.wait || !signs.idle_since || !signs.suspension.empty())
        return {};
    const double seconds = signs.wait->seconds - signs.suspended_seconds;
    if (seconds < min_seconds)
        return {};
    std::string words =
        signs.wait->earlier
            ? fmt::format("waiting for {} for over {} (began before tracing)", signs.wait->name, time_text(seconds))
            : fmt::format("waiting for {} for {}", signs.wait->name, time_text(seconds));
    words += "; no launches since";
    if (signs.suspended_seconds > 0)
        words += fmt::format("; also stopped or frozen for {} (not included)", time_text(signs.suspended_seconds));
    if (signs.has_nccl)
        words += "; it uses NCCL: ncclwait --ras shows which rank is the straggler";
    return Finding{seconds >= alarm_seconds ? Severity::alarm : Severity::warning, std::move(words)};
}

Found stopped(const Signs& signs)
{
    constexpr double min_seconds = 2;
    if (!signs.wait || signs.suspension.empty() || !signs.idle_since || signs.wait->seconds < min_seconds)
        return {};
    return Finding{Severity::warning,
                   fmt::format("{} while waiting for {}; the wait began {} ago{}", signs.suspension, signs.wait->name,
                               time_text(signs.wait->seconds), signs.wait->earlier ? " or earlier" : "")};
}

Found stuck(const Signs& signs)
{
    constexpr double min_seconds = 2, alarm_seconds = 10;
    if (!signs.stuck || signs.stuck->seconds < min_seconds)
        return {};
    return Finding{signs.stuck->seconds >= alarm_seconds ? Severity::alarm : Severity::warning,
                   fmt::format("stuck in {} for over {}", signs.stuck->name, time_text(signs.stuck->seconds))};
}

Found driver_call(const Signs& signs)
{
    constexpr double min_seconds = 2, alarm_seconds = 10;
    if (!signs.driver_call || signs.driver_call->seconds < min_seconds)
        return {};
    return Finding{signs.driver_call->seconds >= alarm_seconds ? Severity::alarm : Severity::warning,
                   fmt::format("stuck in a driver call for {}: {}", time_text(signs.driver_call->seconds),
                               signs.driver_call->name)};
}

Found gpu_error(const Signs& signs)
{
    if (!signs.xid)
        return {};
    const std::optional<Xid> known = gpusnoop::xid(*signs.xid);
    return Finding{Severity::alarm,
                   fmt::format("GPU error, Xid {}{}", *signs.xid, known ? fmt::format(": {}", known->meaning) : "")};
}

Found refused(const Signs& signs)
{
    constexpr double alarm_percent = 50;
    if (!signs.refused)
        return {};
    return Finding{percent(signs.refused, signs.allocations) >= alarm_percent ? Severity::alarm : Severity::warning,
                   fmt::format("{}: OUT_OF_MEMORY (last request: {})",
                               failure_text(signs.refused, signs.allocations, "allocations"),
                               prose_bytes(signs.refused_bytes))};
}

Found grows(const Signs& signs)
{
    // Growth that lasts less than warning_seconds may be a model that is being loaded.
    constexpr double min_seconds = 1.8, warning_seconds = 10, min_bytes_per_second = 1 << 20;
    constexpr double warning_full_seconds = 600, alarm_full_seconds = 120;
    const double rate = signs.seconds > 0 ? static_cast<double>(signs.grown_bytes) / signs.seconds : 0;
    if (signs.frees || signs.growing_seconds < min_seconds || rate < min_bytes_per_second)
        return {};
    Finding finding{signs.growing_seconds >= warning_seconds ? Severity::warning : Severity::note, {}};
    const std::string growth = prose_bytes(static_cast<uint64_t>(rate));
    if (!signs.free_bytes) {
        finding.words = fmt::format("allocates {}/s of device memory and frees nothing", growth);
        return finding;
    }
    const double seconds_to_full = static_cast<double>(*signs.free_bytes) / rate;
    if (seconds_to_full < warning_full_seconds)
        finding.severity = seconds_to_full < alarm_full_seconds ? Severity::alarm : Severity::warning;
    finding.words = fmt::format("GPU {} full in {}: allocates {}/s and frees nothing", signs.free_gpu,
                                time_text(seconds_to_full), growth);
    return finding;
}

Found copies(const Signs& signs)
{
    constexpr double warning_percent = 90;
    if (!copies_are_small(signs))
        return {};
    return Finding{
        percent(signs.synchronous, signs.copies) >= warning_percent ? Severity::warning : Severity::note,
        fmt::format("{} copies/s, {} under 64 KiB, {} synchronous{}", prose_count(per_second(signs.copies, signs)),
                    share_text(signs.small_copies, signs.copies), share_text(signs.synchronous, signs.copies),
                    signs.copied_from.empty() ? "" : ", from " + signs.copied_from)};
}

Found polls(const Signs& signs)
{
    constexpr double min_per_second = 5000, warning_cpu_percent = 50;
    if (signs.seconds < min_rate_seconds || per_second(signs.polls, signs) < min_per_second)
        return {};
    const bool burns_cpu = signs.cpu_percent >= warning_cpu_percent;
    return Finding{burns_cpu ? Severity::warning : Severity::note,
                   fmt::format("polls for completion {} times/s{}", prose_count(per_second(signs.polls, signs)),
                               burns_cpu ? fmt::format(", burning {:.0f}% of a CPU", signs.cpu_percent) : "")};
}

Found spins(const Signs& signs)
{
    constexpr double min_waiting_percent = 80, min_cpu_percent = 80;
    if (signs.seconds < min_rate_seconds || signs.waiting_percent < min_waiting_percent ||
        signs.cpu_percent < min_cpu_percent)
        return {};
    return Finding{Severity::note, fmt::format("busy-waiting for the GPU {:.0f}% of the time, burning {:.0f}% of a CPU",
                                               signs.waiting_percent, signs.cpu_percent)};
}

Found starves(const Signs& signs)
{
    constexpr double min_percent = 30, warning_percent = 60;
    if (signs.seconds < min_rate_seconds || signs.starving_percent < min_percent)
        return {};
    std::string words = fmt::format("CUDA thread is ready but gets no CPU {:.0f}% of the time", signs.starving_percent);
    if (signs.load)
        words += fmt::format(": {:.0f} runnable threads on {:.0f} CPUs", signs.load->running, signs.load->cpus);
    if (signs.cpus && (!signs.load || signs.cpus < signs.load->cpus))
        words += fmt::format("; the process may use {} CPU{}", signs.cpus, signs.cpus == 1 ? "" : "s");
    return Finding{signs.starving_percent >= warning_percent ? Severity::warning : Severity::note, std::move(words)};
}

// Needs NVML, because a GPU may have queued work even while the host thread sleeps.
Found idles(const Signs& signs)
{
    constexpr double min_seconds = 2.8, min_launches_per_second = 10, min_off_cpu_percent = 60, max_gpu_percent = 20;
    if (signs.seconds < min_seconds || per_second(signs.launches, signs) < min_launches_per_second ||
        signs.off_cpu_percent < min_off_cpu_percent || signs.gpu_percent.value_or(100) >= max_gpu_percent)
        return {};
    return Finding{Severity::note, fmt::format("GPU only {:.0f}% busy: the launching thread is asleep or blocked "
                                               "{:.0f}% of the time, not waiting for the GPU",
                                               *signs.gpu_percent, signs.off_cpu_percent)};
}

Found captures(const Signs& signs)
{
    constexpr double min_seconds = 1.8, min_per_second = 2;
    const double captured = per_second(signs.captures, signs), instantiated = per_second(signs.instantiations, signs);
    if (signs.capturing_seconds < min_seconds || std::max(captured, instantiated) < min_per_second)
        return {};
    const std::string rates = !signs.captures ? fmt::format("instantiates graphs {:.1f} times/s", instantiated)
                              : !signs.instantiations
                                  ? fmt::format("captures graphs {:.1f} times/s", captured)
                                  : fmt::format("rebuilds graphs (re-capture storm): {:.1f} captures/s, {:.1f} "
                                                "instantiations/s",
                                                captured, instantiated);
    return Finding{Severity::warning, fmt::format("{}; {} launches/s recorded, {}/s executed", rates,
                                                  prose_count(per_second(signs.captured, signs)),
                                                  prose_count(per_second(signs.launches, signs)))};
}

Found launches(const Signs& signs)
{
    constexpr double min_percent = 60;
    if (signs.seconds < min_rate_seconds || signs.launching_percent < min_percent)
        return {};
    return Finding{Severity::warning,
                   fmt::format("launch-bound: one thread spends {:.0f}% of its time in launch calls; {} launches/s",
                               signs.launching_percent, prose_count(per_second(signs.launches, signs)))};
}

Found few_blocks(const Signs& signs)
{
    constexpr double min_seconds = 2.8;
    if (signs.small_seconds < min_seconds || !are_small(signs.small_grids, signs.grids, signs.seconds))
        return {};
    const std::string rate = prose_count(per_second(signs.grids, signs));
    return Finding{
        Severity::note,
        fmt::format("tiny grids: {} {} launches/s have under {} blocks, too few to fill a GPU",
                    signs.small_grids >= signs.grids ? "all" : share_text(signs.small_grids, signs.grids) + " of", rate,
                    FEW_BLOCKS)};
}

Found shares(const Signs& signs)
{
    constexpr double min_percent = 80;
    if (signs.seconds < min_rate_seconds || !signs.launches || !signs.neighbour ||
        signs.neighbour->percent < min_percent)
        return {};
    return Finding{Severity::note, fmt::format("shares GPU {} with {}, which makes {:.0f}% of that GPU's launches",
                                               signs.neighbour->gpu, signs.neighbour->name, signs.neighbour->percent)};
}

Found fails_in_driver(const Signs& signs)
{
    Found found = fails<Calls::driver>(signs);
    if (found && found->severity == Severity::warning)
        found->severity = Severity::note; // libraries routinely try driver commands that are not supported
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

// Verdicts of equal severity are shown in the order of this table.
constexpr Rule table[] = {
    {"xid", "the driver reported a GPU error (Xid) for the process", "nvioctl --xid", gpu_error, true},
    {"hangs",
     "a wait has lasted 2 s (warning) or 10 s (alarm), and no thread of the process has launched anything since",
     "cudasync -p PID -U", hangs},
    {"stopped", "a wait has lasted 2 s, and its thread is stopped by a signal or a debugger, or frozen with its cgroup",
     "grep -E '^(State|TracerPid)' /proc/PID/status", stopped},
    {"stuck", "an API call other than a wait has not returned for 2 s (warning) or 10 s (alarm)",
     "cudagap -p PID --why", stuck},
    {"driver", "a driver call has not returned for 2 s (warning) or 10 s (alarm)", "nvioctl -p PID", driver_call},
    {"launch", "launches fail; needs --latency", "cudalaunch -p PID -x", fails<Calls::launches>, true},
    {"wait", "waits fail: errors of kernels usually surface there", "cudasync -p PID -x", fails<Calls::waits>, true},
    {"graph", "graph captures or instantiations fail", "cudagraph -p PID -x", fails<Calls::graphs>, true},
    {"copy", "copies fail; without --latency, only synchronous ones are checked", "cudamemcpy -p PID -x",
     fails<Calls::copies>, true},
    {"refused", "allocations fail: out of memory", "gpualloc -p PID -x", refused, true},
    {"memory", "allocations or frees fail for a reason other than out of memory", "gpualloc -p PID -x",
     fails<Calls::memory>, true},
    {"ioctl", "driver calls fail, according to the status that the driver returns", "nvioctl -p PID -x",
     fails_in_driver},
    {"restarts",
     "processes with the same name, in the same container, service or cgroup, exit and restart: at least 3 starts in "
     "60 s (alarm if their calls fail)",
     "cudatop --why -d 60s", restarts, false, true},
    {"grows",
     "device memory grows by at least 1 MiB/s without a free, for 2 s and in two or more intervals: a leak? (warning "
     "after 10 s, or if the GPU will be full within 10 min; alarm: within 2 min)",
     "gpualloc -p PID --leaks", grows},
    {"copies", "at least 500 copies/s, 90% of them under 64 KiB (warning if 90% are synchronous)",
     "cudamemcpy -p PID -U", copies},
    {"polls", "at least 5000 polls for completion per second (warning if the process uses half a CPU: busy-waiting)",
     "cudasync -p PID -U", polls},
    {"starves",
     "a thread that calls CUDA is ready to run but has no CPU 30% of the time (warning: 60%): the CPUs are busy, or "
     "its cgroup is throttled (CPU quota used up)",
     "cudagap -p PID --why", starves},
    {"idle",
     "for 3 s, the GPUs of the process are under 20% busy (NVML), and the thread that launches most (10 launches/s or "
     "more) is asleep or blocked 60% of the time, without counting waits for the GPU",
     "cudagap -p PID --why", idles},
    {"captures", "at least 2 graph captures or instantiations per second, for 2 s and in two or more intervals",
     "cudagraph -p PID --storms", captures},
    {"launches", "a thread spends 60% of its time in launch calls (launch-bound); needs --latency",
     "cudalaunch -p PID -l", launches},
    {"blocks",
     "for 3 s, at least 100 launches/s, 90% of them with under 32 blocks; launches that pass the grid in a struct "
     "(cuLaunchKernelEx) may not count",
     "cudalaunch -p PID", few_blocks},
    {"spins", "busy-waiting: a thread waits 80% of the time while the process uses 80% of a CPU", "cudasync -p PID -U",
     spins},
    {"shares",
     "another process makes 80% of the launches on the same GPU, which is known from NVML or open device files",
     "cudatop --by device", shares},
};

} // namespace

bool copies_are_small(const Signs& signs)
{
    constexpr double min_per_second = 500, min_percent = 90;
    return signs.seconds >= min_rate_seconds && per_second(signs.copies, signs) >= min_per_second &&
           percent(signs.small_copies, signs.copies) >= min_percent;
}

bool are_small(uint64_t small_grids, uint64_t grids, double seconds)
{
    constexpr double min_per_second = 100, min_percent = 90;
    return seconds > 0 && static_cast<double>(grids) / seconds >= min_per_second &&
           percent(small_grids, grids) >= min_percent;
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
