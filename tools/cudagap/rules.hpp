// SPDX-License-Identifier: Apache-2.0
// The rules behind --why: sentences about a process's surroundings, its blocked time and its TCP peers.
#pragma once

#include "rows/thread_times.hpp"
#include "tools/cudagap/circumstances.hpp"
#include "tools/cudagap/gap_causes.hpp"
#include "tools/cudagap/peers.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct CircumstanceRule {
    std::string_view name;
    std::optional<std::string> (*check)(const Circumstances&); // the sentence, if the rule applies
};

std::span<const CircumstanceRule> circumstance_rules();

// Sentences of all rules that apply, in the table's order.
std::vector<std::string> circumstance_words(const Circumstances& around);

// Why a thread gives the GPU no work: one rule for each part of its time. The rule of the largest part applies.

// Observations about one thread in an interval.
struct GapSigns {
    TimeParts parts{};
    std::optional<GapCause> cause;
    std::optional<GapCauses::Load> load;
    std::string files{};      // the files it waited for
    std::string collective{}; // the last NCCL collective that its process called: "AllReduce"; empty if none
    std::string suspension{}; // why it is suspended now: "stopped by a signal"; empty if it is not
};

struct GapRule {
    std::string_view name;  // name of the part in JSON
    std::string_view words; // what the thread is doing: "blocked on a pipe"
    std::string_view next;  // the command to type next; PID is replaced by the process id
};

const GapRule& gap_rule(uint32_t part);
// The next command of the rule that applies.
std::string_view gap_next(const GapSigns& signs);

// "blocked on a pipe 96% of the time, waiting for python3 4711 and 7 more, which are waiting for a CPU 71% of that ..."
std::string gap_words(const GapSigns& signs);

// Why a process's TCP peers make it wait. Each rule reports the peer with the highest severity.
struct PeerRule {
    std::string_view name;
    std::optional<double> (*severity)(const Peer&); // nullopt: the rule does not apply
    std::string (*words)(const Peer&);
};

std::span<const PeerRule> peer_rules();

// Sentences of all rules that apply, in the table's order; none if the thread does not wait for sockets.
std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers);

} // namespace gpusnoop
