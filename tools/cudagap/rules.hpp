// SPDX-License-Identifier: Apache-2.0
// Rules of --why. They turn what was measured about a process, its blocked time and its TCP peers into sentences.
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
    std::optional<std::string> (*check)(const Circumstances&); // returns a sentence if the rule applies
};

std::span<const CircumstanceRule> circumstance_rules();

// Sentences of all rules that apply, in the order of circumstance_rules().
std::vector<std::string> circumstance_words(const Circumstances& around);

// Rules on why a thread gives the GPU no work. Each part of the thread's time has a rule; the rule for the largest part
// applies.

// Observations about one thread in an interval.
struct GapSigns {
    TimeParts parts{};
    std::optional<GapCause> cause;
    std::optional<GapCauses::Load> load;
    std::string files{};      // files that the thread waited for
    std::string collective{}; // last NCCL collective that its process called ("AllReduce"); empty if none
    std::string suspension{}; // why the thread is suspended now ("stopped by a signal"); empty if it is not
};

struct GapRule {
    std::string_view name;  // name, in JSON, of the part of time that the rule is about
    std::string_view words; // activity of the thread: "blocked on a pipe"
    std::string_view next;  // the command to type next; PID is replaced by the process id
};

const GapRule& gap_rule(uint32_t part);
// The command to run next, according to the rule that applies.
std::string_view gap_next(const GapSigns& signs);

// "blocked on a pipe 96% of the time, waiting for python3 4711 and 7 more, which are waiting for a CPU 71% of that ..."
std::string gap_words(const GapSigns& signs);

// Rules on why a process waits for its TCP peers. Each rule reports the peer with the highest severity.
struct PeerRule {
    std::string_view name;
    std::optional<double> (*severity)(const Peer&); // nullopt: the rule does not apply
    std::string (*words)(const Peer&);
};

std::span<const PeerRule> peer_rules();

// Sentences of all rules that apply, in the order of peer_rules(). Empty if the thread does not wait for sockets.
std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers);

} // namespace gpusnoop
