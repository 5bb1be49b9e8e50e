// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace gpusnoop {

namespace {

using Sentence = std::optional<std::string>;

double seconds_of(const Circumstances& around)
{
    return static_cast<double>(around.covered_ns.value_or(0)) / 1e9;
}

Sentence quota(const Circumstances& around)
{
    constexpr double min_share = 0.05; // throttling for a smaller share of the interval is not reported
    if (!around.quota_cpus || !around.throttles || !around.throttled_ns)
        return {};
    const double seconds = static_cast<double>(*around.throttled_ns) / 1e9;
    if (seconds < min_share * seconds_of(around))
        return {};
    return fmt::format(
        "its cgroup is limited to {:.2g} CPUs: throttled {} times, for {:.1f} s (summed over CPUs) in {:.1f} s",
        *around.quota_cpus, *around.throttles, seconds, seconds_of(around));
}

template<Pressure of>
Sentence pressure(const Circumstances& around)
{
    constexpr double min_percent = 10;
    constexpr std::string_view resources[PRESSURES] = {"CPU", "I/O", "memory"};
    const auto percent = around.stalled_percent[of];
    if (!percent || *percent < min_percent)
        return {};
    return fmt::format("{} pressure {}: {:.0f}% (PSI some)", resources[of],
                       around.machine_wide.value_or(0) ? "on the machine" : "in its cgroup", *percent);
}

Sentence affinity(const Circumstances& around)
{
    if (!around.allowed_cpus || around.allowed_cpus >= around.cpus)
        return {};
    return fmt::format("restricted to {} of {} CPUs{}", around.allowed_cpus, around.cpus,
                       around.threads ? fmt::format(", with {} threads", *around.threads) : "");
}

Sentence nodes(const Circumstances& around)
{
    if (around.nodes.empty() || around.gpu_nodes.empty() ||
        std::ranges::any_of(around.nodes, [&](unsigned node) { return around.gpu_nodes.contains(node); }))
        return {};
    return fmt::format("its threads run on NUMA node {}, but the GPUs are on node {}", fmt::join(around.nodes, ", "),
                       fmt::join(around.gpu_nodes, ", "));
}

Sentence faults(const Circumstances& around)
{
    constexpr double min_rate = 10;
    if (!around.major_faults || seconds_of(around) <= 0)
        return {};
    const double rate = static_cast<double>(*around.major_faults) / seconds_of(around);
    return rate < min_rate ? Sentence() : fmt::format("{:.0f} major page faults/s (reads from disk)", rate);
}

Sentence swap(const Circumstances& around)
{
    constexpr uint64_t min_bytes = 1 << 20;
    if (around.swapped_bytes.value_or(0) < min_bytes)
        return {};
    return fmt::format("{} of its memory is swapped out", prose_bytes(*around.swapped_bytes));
}

constexpr CircumstanceRule circumstances_table[] = {
    {"quota", quota},
    {"CPU pressure", pressure<PRESSURE_CPU>},
    {"I/O pressure", pressure<PRESSURE_IO>},
    {"memory pressure", pressure<PRESSURE_MEMORY>},
    {"affinity", affinity},
    {"nodes", nodes},
    {"faults", faults},
    {"swap", swap},
};

} // namespace

std::span<const CircumstanceRule> circumstance_rules()
{
    return circumstances_table;
}

std::vector<std::string> circumstance_words(const Circumstances& around)
{
    std::vector<std::string> words;
    for (const CircumstanceRule& rule : circumstances_table)
        if (auto sentence = rule.check(around))
            words.push_back(std::move(*sentence));
    return words;
}

namespace {

constexpr std::string_view list_gaps = "cudagap -p PID -e -l 10ms";

constexpr auto gap_table = [] {
    std::array<GapRule, TIME_PARTS> of{};
    of[TIME_CPU] = {"cpu", "computing", "perf top -p PID"};
    of[TIME_LAUNCH] = {"launch", "in launch calls", "cudalaunch -p PID -l"};
    of[TIME_COPY] = {"copy", "in copy calls", "cudamemcpy -p PID -U"};
    of[TIME_WAIT] = {"wait", "waiting for the GPU", "cudasync -p PID -U"};
    of[TIME_MEMORY] = {"memory", "allocating and freeing memory", "gpualloc -p PID"};
    of[TIME_CALL] = {"call", "in other CUDA calls", "cudagraph -p PID"};
    of[TIME_RUNQ] = {"runq", "waiting for a CPU", "top -H"};
    of[TIME_THROTTLED] = {"throttled", "throttled by its cgroup's CPU quota", "systemd-cgtop"};
    of[TIME_HARDIRQ] = {"hardirq", "interrupted by devices (hardirq)", "watch -d cat /proc/interrupts"};
    of[TIME_SOFTIRQ] = {"softirq", "interrupted by softirqs", "watch -d cat /proc/softirqs"};
    of[TIME_STOPPED] = {"stopped", "stopped or frozen", "grep -E '^(State|TracerPid)' /proc/PID/status"};
    of[TIME_LOCK] = {"lock", "blocked on a lock", list_gaps};
    of[TIME_POLL] = {"poll", "blocked in poll", list_gaps};
    of[TIME_PIPE] = {"pipe", "blocked on a pipe", list_gaps};
    of[TIME_SOCKET] = {"socket", "blocked on a socket", list_gaps};
    of[TIME_DISK] = {"disk", "waiting for files", "cudagap -p PID --files 5"};
    of[TIME_FAULT] = {"fault", "waiting in page faults", "vmstat 1"};
    of[TIME_SLEEP] = {"sleep", "sleeping", list_gaps};
    of[TIME_DRIVER] = {"driver", "in calls into the driver", "nvioctl -p PID"};
    of[TIME_CHILD] = {"child", "waiting for a child process", list_gaps};
    of[TIME_OTHER] = {"other", "blocked for another reason", list_gaps};
    return of;
}();

double percent_of_largest(const TimeParts& parts)
{
    const auto all = static_cast<double>(std::accumulate(parts.begin(), parts.end(), uint64_t{0}));
    return all > 0 ? 100 * static_cast<double>(parts[largest_part(parts)]) / all : 0;
}

std::string wakers_text(const GapCause& cause)
{
    const std::string first = fmt::format("{} {}", cause.comm, *cause.pids.begin());
    return cause.pids.size() == 1 ? first : fmt::format("{} and {} more", first, cause.pids.size() - 1);
}

// Names the files, if the thread waited for files in this part of its time.
std::string files_text(uint32_t part, const std::string& files)
{
    return files.empty() || (part != TIME_DISK && part != TIME_FAULT) ? std::string()
                                                                      : fmt::format(", mostly {}", files);
}

// Phrase for the event that ended a wait; empty if a thread ended it.
std::string end_text(uint32_t part, uint32_t by, bool several = false)
{
    const std::string_view words = !is_wait_for_thread(part) ? "" : block_end_words(by, several);
    return words.empty() ? std::string() : fmt::format(", {}", words);
}

// True if a wait for the GPU may be a wait for other ranks: the host cannot see which work is waited for, and a
// collective completes only after every rank has joined it.
bool waits_for_ranks(const GapSigns& signs)
{
    return largest_part(signs.parts) == TIME_WAIT && !signs.collective.empty();
}

} // namespace

const GapRule& gap_rule(uint32_t part)
{
    return gap_table.at(part);
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
        return fmt::format("{} now; over the whole time: {}", signs.suspension, gap_words(before));
    }
    uint32_t part = largest_part(signs.parts);
    const double percent = percent_of_largest(signs.parts);
    if (waits_for_ranks(signs))
        return fmt::format("waiting for the GPU {:.0f}% of the time; calls NCCL's {}, so another rank may be the "
                           "straggler",
                           percent, signs.collective);
    if (part == TIME_WAIT)
        return fmt::format("not held up: spends {:.0f}% of its time waiting for the GPU", percent);
    std::string words =
        fmt::format("{} {:.0f}% of the time", gap_table[part].words, percent) + files_text(part, signs.files);
    if (is_wait_for_thread(part) && signs.cause) {
        const GapCause& cause = *signs.cause;
        if (cause.by != WOKEN_BY_THREAD)
            return words + end_text(part, cause.by);
        words += fmt::format(", {}waiting for {}", cause.indirect ? "ultimately " : "", wakers_text(cause));
        if (const double of_cause = percent_of_largest(cause.parts); of_cause > 0) {
            part = largest_part(cause.parts);
            const bool several = cause.pids.size() > 1;
            words += fmt::format(", which {} {} {:.0f}% of that time", several ? "are" : "is", gap_table[part].words,
                                 of_cause) +
                     end_text(part, largest_end(cause.ends), several) + files_text(part, cause.files.top_folder());
        }
    }
    if (part == TIME_RUNQ && signs.load)
        words += fmt::format(": {:.0f} runnable threads on {:.0f} CPUs", signs.load->running, signs.load->cpus);
    return words;
}

namespace {

using Severity = std::optional<double>;

// Returns `some` / `all`; nullopt if a number is unknown, or if `some` or the ratio is too small to report, such as a
// few segments when a connection starts.
Severity share_of(const std::optional<uint64_t>& some, const std::optional<uint64_t>& all)
{
    constexpr double min_share = 0.005;
    constexpr uint64_t min_count = 3;
    if (!some || *some < min_count || !all || !*all)
        return {};
    const double share = static_cast<double>(*some) / static_cast<double>(*all);
    return share < min_share ? Severity() : share;
}

double ms(uint64_t us)
{
    return static_cast<double>(us) / 1e3;
}

Severity retransmitted(const Peer& peer)
{
    return share_of(peer.retransmits, peer.segments);
}

std::string retransmitted_words(const Peer& peer)
{
    return fmt::format("{:.1f}% of TCP segments to {} were retransmitted ({} of {})", 100 * *retransmitted(peer),
                       peer.name(), *peer.retransmits, *peer.segments);
}

Severity out_of_order(const Peer& peer)
{
    return share_of(peer.out_of_order, peer.arrived);
}

std::string out_of_order_words(const Peer& peer)
{
    return fmt::format("{:.1f}% of TCP segments from {} arrived out of order ({} of {})", 100 * *out_of_order(peer),
                       peer.name(), *peer.out_of_order, *peer.arrived);
}

// Applies to round trips of 5 ms or more. Within a data center, a round trip takes less than 1 ms.
Severity far_away(const Peer& peer)
{
    constexpr uint64_t min_us = 5000;
    const auto rtt = peer.rtt_us(0.5);
    return rtt && *rtt >= min_us ? Severity(static_cast<double>(*rtt)) : Severity();
}

std::string far_away_words(const Peer& peer)
{
    std::string words = fmt::format("the round trip to {} takes {:.1f} ms", peer.name(), ms(*peer.rtt_us(0.5)));
    if (peer.rtts_us.size() > 1)
        words += fmt::format(" (p95 of {} connections: {:.1f} ms)", peer.rtts_us.size(), ms(*peer.rtt_us(0.95)));
    return words;
}

constexpr PeerRule peer_table[] = {
    {"retransmitted", retransmitted, retransmitted_words},
    {"out of order", out_of_order, out_of_order_words},
    {"far away", far_away, far_away_words},
};

// Includes time blocked in poll(), because most programs wait for their sockets there.
bool waits_for_sockets(const TimeParts& parts)
{
    constexpr uint64_t tenth = 10;
    const uint64_t waits = parts[TIME_SOCKET] + parts[TIME_POLL];
    return waits && waits * tenth >= std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}

} // namespace

std::span<const PeerRule> peer_rules()
{
    return peer_table;
}

std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers)
{
    std::vector<std::string> words;
    if (peers.empty() || !waits_for_sockets(parts))
        return words;
    for (const PeerRule& rule : peer_table) {
        const auto worst = std::ranges::max_element(peers, {}, rule.severity);
        if (rule.severity(*worst))
            words.push_back(rule.words(*worst));
    }
    return words;
}

} // namespace gpusnoop
