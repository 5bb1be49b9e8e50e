// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/gap_rules.hpp"

#include <array>
#include <fmt/format.h>
#include <numeric>

namespace gpusnoop {
namespace {

constexpr std::string_view lines = "cudagap -p PID -e -l 10ms";

constexpr auto table = [] {
    std::array<GapRule, TIME_PARTS> of{};
    of[TIME_CPU] = {"cpu", "computes", "compute", "perf top -p PID"};
    of[TIME_LAUNCH] = {"launch", "is in launch calls", "are in launch calls", "cudalaunch -p PID -l"};
    of[TIME_COPY] = {"copy", "is in copies", "are in copies", "cudamemcpy -p PID -U"};
    of[TIME_WAIT] = {"wait", "waits for the GPU", "wait for the GPU", "cudasync -p PID -U"};
    of[TIME_MEMORY] = {"memory", "allocates and frees", "allocate and free", "gpualloc -p PID"};
    of[TIME_CALL] = {"call", "is in other calls of CUDA", "are in other calls of CUDA", "cudagraph -p PID"};
    of[TIME_RUNQ] = {"runq", "waits for a CPU", "wait for a CPU", "top -H"};
    of[TIME_THROTTLED] = {"throttled", "is throttled by its cgroup's quota of CPU",
                          "are throttled by their cgroup's quota of CPU", "systemd-cgtop"};
    of[TIME_HARDIRQ] = {"hardirq", "is interrupted", "are interrupted", "watch -d cat /proc/interrupts"};
    of[TIME_SOFTIRQ] = {"softirq", "is interrupted by what the kernel has put off",
                        "are interrupted by what the kernel has put off", "watch -d cat /proc/softirqs"};
    of[TIME_STOPPED] = {"stopped", "is stopped or frozen", "are stopped or frozen",
                        "grep -E '^(State|TracerPid)' /proc/PID/status"};
    of[TIME_LOCK] = {"lock", "waits for a lock", "wait for a lock", lines};
    of[TIME_POLL] = {"poll", "waits in poll", "wait in poll", lines};
    of[TIME_PIPE] = {"pipe", "waits in a pipe", "wait in a pipe", lines};
    of[TIME_SOCKET] = {"socket", "waits in a socket", "wait in a socket", lines};
    of[TIME_DISK] = {"disk", "waits for files", "wait for files", "cudagap -p PID --files 5"};
    of[TIME_FAULT] = {"fault", "waits in page faults", "wait in page faults", "vmstat 1"};
    of[TIME_SLEEP] = {"sleep", "sleeps", "sleep", lines};
    of[TIME_DRIVER] = {"driver", "is in calls into the driver", "are in calls into the driver", "nvioctl -p PID"};
    of[TIME_CHILD] = {"child", "waits for a child", "wait for a child", lines};
    of[TIME_OTHER] = {"other", "is blocked for another reason", "are blocked for another reason", lines};
    return of;
}();

double percent_of_largest(const TimeParts& parts)
{
    const auto all = static_cast<double>(std::accumulate(parts.begin(), parts.end(), uint64_t{0}));
    return all > 0 ? 100 * static_cast<double>(parts[largest_part(parts)]) / all : 0;
}

std::string who(const GapCause& cause)
{
    const std::string first = fmt::format("{} {}", cause.comm, *cause.pids.begin());
    return cause.pids.size() == 1 ? first : fmt::format("{} and {} more", first, cause.pids.size() - 1);
}

// Which they are, where it is files that are waited for.
std::string of_files(uint32_t part, const std::string& files)
{
    return files.empty() || (part != TIME_DISK && part != TIME_FAULT) ? std::string()
                                                                      : fmt::format(", most of it for {}", files);
}

// What ended a wait that no thread ended.
std::string until(uint32_t part, uint32_t by, bool several = false)
{
    const std::string_view words = !is_of_others(part) ? "" : block_end_words(by, several);
    return words.empty() ? std::string() : fmt::format(", {}", words);
}

// The host cannot see which work a wait is for: a collective is done once all ranks have come to it.
bool waits_for_ranks(const GapSigns& signs)
{
    return largest_part(signs.parts) == TIME_WAIT && !signs.collective.empty();
}

} // namespace

const GapRule& gap_rule(uint32_t part)
{
    return table.at(part);
}

std::string_view gap_next(const GapSigns& signs)
{
    return waits_for_ranks(signs) ? "ncclwait --by rank 5" : gap_rule(largest_part(signs.parts)).next;
}

std::string gap_words(const GapSigns& signs)
{
    if (!signs.suspension.empty()) {
        GapSigns before = signs;
        before.suspension.clear();
        return fmt::format("is {} now; in all it {}", signs.suspension, gap_words(before));
    }
    uint32_t part = largest_part(signs.parts);
    const double percent = percent_of_largest(signs.parts);
    if (waits_for_ranks(signs))
        return fmt::format("waits for the GPU {:.0f}% of its time, and calls NCCL's {}: other ranks may hold it up",
                           percent, signs.collective);
    if (part == TIME_WAIT)
        return fmt::format("is held up by nothing: the GPU is busy, it waits for that {:.0f}% of its time", percent);
    std::string words = fmt::format("{} {:.0f}% of its time", table[part].words, percent) + of_files(part, signs.files);
    if (is_of_others(part) && signs.cause) {
        const GapCause& cause = *signs.cause;
        if (cause.by != WOKEN_BY_THREAD)
            return words + until(part, cause.by);
        words += fmt::format(", {}for {}", cause.indirect ? "in the end " : "", who(cause));
        if (const double of_cause = percent_of_largest(cause.parts); of_cause > 0) {
            part = largest_part(cause.parts);
            const bool several = cause.pids.size() > 1;
            words += fmt::format(", which {} {:.0f}% of that time", several ? table[part].they : table[part].words,
                                 of_cause) +
                     until(part, largest_end(cause.ends), several) + of_files(part, cause.files.most());
        }
    }
    if (part == TIME_RUNQ && signs.load)
        words += fmt::format(": {:.0f} threads run or could run on {:.0f} CPUs", signs.load->running, signs.load->cpus);
    return words;
}

} // namespace gpusnoop
