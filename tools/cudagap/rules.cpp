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

using Said = std::optional<std::string>;

double seconds_of(const Circumstances& around)
{
    return static_cast<double>(around.covered_ns.value_or(0)) / 1e9;
}

Said quota(const Circumstances& around)
{
    constexpr double much = 0.05; // of the time
    if (!around.quota_cpus || !around.throttles || !around.throttled_ns)
        return {};
    const double seconds = static_cast<double>(*around.throttled_ns) / 1e9;
    if (seconds < much * seconds_of(around))
        return {};
    return fmt::format(
        "its cgroup may use {:.2g} CPUs: throttled {} times, for {:.1f} s (of all CPUs together) in {:.1f} s",
        *around.quota_cpus, *around.throttles, seconds, seconds_of(around));
}

template<Pressure of>
Said pressure(const Circumstances& around)
{
    constexpr double much = 10;
    constexpr std::string_view what[PRESSURES] = {"a CPU", "disks", "memory"};
    const auto percent = around.stalled_percent[of];
    if (!percent || *percent < much)
        return {};
    return fmt::format("some task of {} waits for {} {:.0f}% of the time",
                       around.of_machine.value_or(0) ? "the machine" : "its cgroup", what[of], *percent);
}

Said affinity(const Circumstances& around)
{
    if (!around.allowed_cpus || around.allowed_cpus >= around.cpus)
        return {};
    return fmt::format("it may use {} of {} CPUs{}", around.allowed_cpus, around.cpus,
                       around.threads ? fmt::format(", with {} threads", *around.threads) : "");
}

Said nodes(const Circumstances& around)
{
    if (around.nodes.empty() || around.gpu_nodes.empty() ||
        std::ranges::any_of(around.nodes, [&](unsigned node) { return around.gpu_nodes.contains(node); }))
        return {};
    return fmt::format("its threads are on NUMA node {}, and no GPU is: those are on {}", fmt::join(around.nodes, ", "),
                       fmt::join(around.gpu_nodes, ", "));
}

Said faults(const Circumstances& around)
{
    constexpr double often = 10;
    if (!around.major_faults || seconds_of(around) <= 0)
        return {};
    const double rate = static_cast<double>(*around.major_faults) / seconds_of(around);
    return rate < often ? Said() : fmt::format("{:.0f} page faults/s read from a disk", rate);
}

Said swap(const Circumstances& around)
{
    constexpr uint64_t much = 1 << 20;
    if (around.swapped_bytes.value_or(0) < much)
        return {};
    return fmt::format("{} of its memory is swapped out", human_bytes(*around.swapped_bytes));
}

constexpr CircumstanceRule circumstances_table[] = {
    {"quota", quota},
    {"pressure of CPUs", pressure<PRESSURE_CPU>},
    {"pressure of disks", pressure<PRESSURE_IO>},
    {"pressure of memory", pressure<PRESSURE_MEMORY>},
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
        if (auto said = rule.look(around))
            words.push_back(std::move(*said));
    return words;
}

namespace {

constexpr std::string_view lines = "cudagap -p PID -e -l 10ms";

constexpr auto gap_table = [] {
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
        return fmt::format("is {} now; in all it {}", signs.suspension, gap_words(before));
    }
    uint32_t part = largest_part(signs.parts);
    const double percent = percent_of_largest(signs.parts);
    if (waits_for_ranks(signs))
        return fmt::format("waits for the GPU {:.0f}% of its time, and calls NCCL's {}: other ranks may hold it up",
                           percent, signs.collective);
    if (part == TIME_WAIT)
        return fmt::format("is held up by nothing: the GPU is busy, it waits for that {:.0f}% of its time", percent);
    std::string words =
        fmt::format("{} {:.0f}% of its time", gap_table[part].words, percent) + of_files(part, signs.files);
    if (is_of_others(part) && signs.cause) {
        const GapCause& cause = *signs.cause;
        if (cause.by != WOKEN_BY_THREAD)
            return words + until(part, cause.by);
        words += fmt::format(", {}for {}", cause.indirect ? "in the end " : "", who(cause));
        if (const double of_cause = percent_of_largest(cause.parts); of_cause > 0) {
            part = largest_part(cause.parts);
            const bool several = cause.pids.size() > 1;
            words += fmt::format(", which {} {:.0f}% of that time",
                                 several ? gap_table[part].they : gap_table[part].words, of_cause) +
                     until(part, largest_end(cause.ends), several) + of_files(part, cause.files.most());
        }
    }
    if (part == TIME_RUNQ && signs.load)
        words += fmt::format(": {:.0f} threads run or could run on {:.0f} CPUs", signs.load->running, signs.load->cpus);
    return words;
}

namespace {

using Bad = std::optional<double>;

// A share that is worth a word; a few at the begin of a connection are none.
Bad share_of(const std::optional<uint64_t>& some, const std::optional<uint64_t>& all)
{
    constexpr double much = 0.005;
    constexpr uint64_t few = 3;
    if (!some || *some < few || !all || !*all)
        return {};
    const double share = static_cast<double>(*some) / static_cast<double>(*all);
    return share < much ? Bad() : share;
}

double ms(uint64_t us)
{
    return static_cast<double>(us) / 1e3;
}

Bad sent_again(const Peer& peer)
{
    return share_of(peer.retransmits, peer.segments);
}

std::string sent_again_words(const Peer& peer)
{
    return fmt::format("of {} segments sent to {}, {} went again ({:.1f}%): they get lost on the way", *peer.segments,
                       peer.name(), *peer.retransmits, 100 * *sent_again(peer));
}

Bad out_of_order(const Peer& peer)
{
    return share_of(peer.out_of_order, peer.arrived);
}

std::string out_of_order_words(const Peer& peer)
{
    return fmt::format("of {} segments from {}, {} came out of order ({:.1f}%): others before them were lost or late",
                       *peer.arrived, peer.name(), *peer.out_of_order, 100 * *out_of_order(peer));
}

// Within a data center it is below 1 ms.
Bad far_away(const Peer& peer)
{
    constexpr uint64_t long_us = 5000;
    const auto rtt = peer.rtt_us(0.5);
    return rtt && *rtt >= long_us ? Bad(static_cast<double>(*rtt)) : Bad();
}

std::string far_away_words(const Peer& peer)
{
    std::string words = fmt::format("{} is {:.1f} ms away, there and back", peer.name(), ms(*peer.rtt_us(0.5)));
    if (peer.rtts_us.size() > 1)
        words += fmt::format(" (p95 of {} connections: {:.1f} ms)", peer.rtts_us.size(), ms(*peer.rtt_us(0.95)));
    return words;
}

constexpr PeerRule peer_table[] = {
    {"sent again", sent_again, sent_again_words},
    {"out of order", out_of_order, out_of_order_words},
    {"far away", far_away, far_away_words},
};

// Most programs wait for sockets in poll.
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
        const auto worst = std::ranges::max_element(peers, {}, rule.look);
        if (rule.look(*worst))
            words.push_back(rule.words(*worst));
    }
    return words;
}

} // namespace gpusnoop
