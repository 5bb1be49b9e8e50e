// SPDX-License-Identifier: Apache-2.0
#include "losses.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cstdint>
#include <numeric>

namespace gpusnoop {
namespace {

struct LossText {
    std::string_view key;
    std::string_view text;
};

constexpr std::array<LossText, LOSSES> texts = [] {
    std::array<LossText, LOSSES> t{};
    t[LOSS_EVENT] = {"events_lost", "events lost: the ring buffer was full (make it larger with --ring-mb)"};
    t[LOSS_ROW] = {"calls_lost",
                   "calls are in no row: table and ring buffer were full (enlarge them: --table-rows, --ring-mb)"};
    t[LOSS_NAME] = {"names_lost", "kernel names missed: the ring buffer was full (make it larger with --ring-mb)"};
    t[LOSS_ARGUMENTS] = {"arguments_unreadable",
                         "calls with arguments in unreadable memory: counted, without shape or size"};
    t[LOSS_START] = {"starts_lost", "calls not counted, or not learned from: their start could not be kept"};
    t[LOSS_END] = {"ends_unmatched", "calls returned that had begun before tracing did: not counted"};
    t[LOSS_ADDRESS] = {"probes_unidentified",
                       "probe hits that could not be told apart (--attach tracefs): not counted"};
    t[LOSS_STACK] = {"stacks_lost", "stacks could not be read or kept: their calls are counted without one"};
    t[LOSS_STATE] = {"state_lost",
                     "captures, contexts, functions or allocations found no room: device, capture and memory "
                     "may be wrong"};
    t[LOSS_WAITING] = {"waits_unseen", "waits found no room: not shown before they returned"};
    t[LOSS_UNTRACKED] = {"allocations_untracked",
                         "allocations found no room and are in no live figure (make room with --live-entries)"};
    t[LOSS_PROCESS] = {"processes_unnamed", "processes found no room: their rows lack name and cgroup"};
    t[LOSS_RETURN] = {"returns_missed", "calls returned unseen and are not counted: too many at once for a kprobe"};
    return t;
}();

std::vector<Loss> in_words(const std::array<uint64_t, LOSSES>& counts)
{
    std::vector<Loss> losses;
    for (size_t i = 0; i < LOSSES; i++)
        if (counts[i])
            losses.push_back({texts[i].key, texts[i].text, counts[i]});
    return losses;
}

} // namespace

std::array<uint64_t, LOSSES> Losses::read() const
{
    std::array<uint64_t, LOSSES> counts{};
    std::vector<uint64_t> per_cpu(static_cast<size_t>(libbpf_num_possible_cpus()));
    for (uint32_t i = 0; i < LOSSES; i++)
        if (bpf_map_lookup_elem(map_fd_, &i, per_cpu.data()) == 0)
            counts[i] = std::accumulate(per_cpu.begin(), per_cpu.end(), uint64_t{0});
    return counts;
}

std::vector<Loss> Losses::since_last()
{
    const std::array<uint64_t, LOSSES> now = read();
    std::array<uint64_t, LOSSES> delta{};
    for (size_t i = 0; i < LOSSES; i++)
        delta[i] = now[i] - seen_[i];
    seen_ = now;
    return in_words(delta);
}

uint64_t Losses::sum() const
{
    const auto counts = read();
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

std::vector<Loss> Losses::all() const
{
    return in_words(read());
}

} // namespace gpusnoop
