// SPDX-License-Identifier: Apache-2.0
#include "run/report_notes.hpp"

#include "base/bpf_map.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>

namespace gpusnoop {

namespace {

struct LossText {
    std::string_view key;
    std::string_view text;
};

constexpr std::array<LossText, LOSSES> texts = [] {
    std::array<LossText, LOSSES> t{};
    t[LOSS_EVENT] = {"events_lost", "events lost: the ring buffer was full (enlarge it with --ring-mb)"};
    t[LOSS_ROW] = {"calls_lost",
                   "calls were not counted: both table and ring buffer were full (raise --table-rows, --ring-mb)"};
    t[LOSS_DETAIL] = {"calls_coarse",
                      "calls were merged into coarser rows: their process had used up its share of the table"};
    t[LOSS_NAME] = {"names_lost", "kernel names lost: the ring buffer was full (enlarge it with --ring-mb)"};
    t[LOSS_ARGUMENTS] = {"arguments_unreadable",
                         "calls whose arguments could not be read: counted, but without shape or size"};
    t[LOSS_START] = {"starts_lost", "calls were not counted or lost their details: their entry could not be recorded"};
    t[LOSS_END] = {"ends_unmatched", "calls began before tracing started: not counted"};
    t[LOSS_ADDRESS] = {"probes_unidentified",
                       "probe hits that could not be assigned to a function (--attach tracefs): not counted"};
    t[LOSS_STACK] = {"stacks_lost", "stacks could not be read or kept: their calls are counted without a stack"};
    t[LOSS_STATE] = {"state_lost",
                     "captures, contexts, functions or allocations did not fit in a full table: device, capture and "
                     "memory columns may be wrong"};
    t[LOSS_WAITING] = {"waits_unseen", "waits did not fit in a table: not shown until they returned"};
    t[LOSS_UNTRACKED] = {"allocations_untracked",
                         "allocations did not fit in the table: not included in live memory (raise --live-entries)"};
    t[LOSS_PROCESS] = {"processes_unnamed", "processes did not fit in a table: their rows lack name and cgroup"};
    t[LOSS_LEFT] = {
        "calls_left",
        "calls ended by longjmp or an exception instead of returning: not counted, because they have no result "
        "or duration"};
    t[LOSS_RETURN] = {"returns_missed", "calls were not counted because their return was missed"};
    t[LOSS_THREAD] = {"threads_untold", "threads did not fit in a table: not shown"};
    t[LOSS_TIME_PART] = {"turns_lost",
                         "changes of a thread's state were not recorded: some time is shown in the wrong column"};
    t[LOSS_GAP] = {"gaps_lost", "gaps did not fit in a table: missing from histograms"};
    t[LOSS_BLOCK] = {"blocks_lost", "blocked periods did not fit in a table: missing from the rows of -U or --files"};
    t[LOSS_WAKER] = {"wakers_lost",
                     "threads that woke others did not fit in a table: the activity of these wakers is unknown"};
    t[LOSS_CALLERS] = {"stacks_differing", "checked calls (1 in 1024) had native callers other than those "
                                           "shown: each stack shows the callers of its first call"};
    t[LOSS_RUN] = {"hits_skipped",
                   "probe hits were skipped by the kernel because BPF was already active on that CPU: not "
                   "counted"};
    return t;
}();

// Number of program runs that the kernel skipped. Programs on tracepoints and kprobes do not run on a CPU while a
// system call on that CPU accesses a BPF map (bpf_disable_instrumentation()). The kernel counts skipped runs since
// 5.12.
uint64_t runs_skipped(const bpf_object* object)
{
    uint64_t skipped = 0;
    bpf_program* program;
    bpf_object__for_each_program (program, object) {
        bpf_prog_info info{};
        uint32_t size = sizeof(info);
        if (const int fd = bpf_program__fd(program); fd >= 0 && bpf_prog_get_info_by_fd(fd, &info, &size) == 0)
            skipped += info.recursion_misses;
    }
    return skipped;
}

std::vector<Loss> nonzero(const std::array<uint64_t, LOSSES>& counts)
{
    std::vector<Loss> losses;
    for (size_t i = 0; i < LOSSES; i++)
        if (counts[i])
            losses.push_back({texts[i].key, texts[i].text, counts[i]});
    return losses;
}

} // namespace

Losses::Losses(const bpf_object* object) : object_(object), map_fd_(bpf_object__find_map_fd_by_name(object, "losses"))
{}

std::array<uint64_t, LOSSES> Losses::read() const
{
    std::array<uint64_t, LOSSES> counts{};
    std::ranges::copy(cpu_sums(map_fd_, LOSSES), counts.begin());
    counts[LOSS_RUN] = runs_skipped(object_);
    for (size_t i = 0; i < LOSSES; i++)
        counts.at(i) += added_.at(i);
    return counts;
}

std::vector<Loss> Losses::since_last()
{
    const std::array<uint64_t, LOSSES> now = read();
    std::array<uint64_t, LOSSES> delta{};
    for (size_t i = 0; i < LOSSES; i++)
        delta[i] = now[i] - seen_[i];
    seen_ = now;
    return nonzero(delta);
}

uint64_t Losses::sum() const
{
    const auto counts = read();
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

Cost::Share Cost::since_last(double seconds)
{
    std::array<uint64_t, HITS> hits{};
    std::ranges::copy(cpu_sums(hits_fd_, HITS), hits.begin());
    const auto entries = static_cast<double>(hits[HIT_ENTRY] - seen_[HIT_ENTRY]);
    const auto returns = static_cast<double>(hits[HIT_RETURN] - seen_[HIT_RETURN]);
    const uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double percent_ns = seconds * 1e7;
    Share share;
    if (seconds > 0) {
        share.hits_per_second = (entries + returns) / seconds;
        if (const std::optional<ProbeCost>& one = per_hit_.cost())
            share.probes_percent = (entries * one->entry_ns + returns * one->return_ns) / percent_ns;
        if (own_ns_)
            share.own_percent = static_cast<double>(own_ns - own_ns_) / percent_ns;
    }
    seen_ = hits;
    own_ns_ = own_ns;
    return share;
}

namespace {

// Text for a duration, such as "250 ms", "2.5 s" or "90 s".
std::string length_text(std::chrono::nanoseconds length)
{
    const double seconds = std::chrono::duration<double>(length).count();
    if (seconds < 1)
        return fmt::format("{:.0f} ms", seconds * 1e3);
    return fmt::format("{} s", seconds < 10 ? std::round(seconds * 10) / 10 : std::round(seconds));
}

// Text such as "processes 1, 2 and 3", or "7 processes" if there are many.
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
        text += fmt::format("{} whose name contains '{}'", text.empty() ? " by a process or thread" : ", in a thread",
                            options.comm);
    if (!report.cgroup.empty())
        text += " in cgroup " + report.cgroup;
    return text;
}

// Last part of sentence(): the likely reason for the empty report. Empty if the reason is unknown.
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
        return report.target_ended  ? fmt::format("; {} has exited", it)
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
        return "; none of the readable processes maps CUDA";
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
    return fmt::format("no {}{} in {}{}", report.noun, whose(report, options), length_text(report.length),
                       reason(report, options));
}

} // namespace gpusnoop
