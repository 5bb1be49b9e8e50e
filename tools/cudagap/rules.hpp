// SPDX-License-Identifier: Apache-2.0
// What around a process holds it up, in words: a table of rules, each of which speaks for itself.
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
    std::optional<std::string> (*look)(const Circumstances&);
};

std::span<const CircumstanceRule> circumstance_rules();

// Of all rules that speak, in the table's order.
std::vector<std::string> circumstance_words(const Circumstances& around);

// Why a thread gives the GPU no work, in words: a rule for each part of its time, the largest of which speaks.

// Of a thread, in an interval.
struct GapSigns {
    TimeParts parts{};
    std::optional<GapCause> cause;
    std::optional<GapCauses::Load> load;
    std::string files{};      // that it waited for
    std::string collective{}; // "AllReduce": the last of NCCL that its process called; empty: none
    std::string suspension{}; // "stopped by a signal": it is so now
};

struct GapRule {
    std::string_view name;  // of the part, in JSON
    std::string_view words; // behind the thread's name: "waits in a pipe"
    std::string_view they;  // the same of several: "wait in a pipe"
    std::string_view next;  // the command to be typed next, with PID for the process
};

const GapRule& gap_rule(uint32_t part);
// The command of the rule that speaks.
std::string_view gap_next(const GapSigns& signs);

// "waits in a pipe 96% of its time, for python3 4711 and 7 more, which wait for a CPU 71% of theirs: 9 threads ..."
std::string gap_words(const GapSigns& signs);

// What of its peers holds a process up that waits in sockets, in words: a table of rules, each of which speaks for
// itself of the peer that it is worst with.
struct PeerRule {
    std::string_view name;
    // How bad it is; nullopt: it is not.
    std::optional<double> (*look)(const Peer&);
    std::string (*words)(const Peer&);
};

std::span<const PeerRule> peer_rules();

// Of all rules that speak, in the table's order; none where the thread does not wait for sockets.
std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers);

} // namespace gpusnoop
