// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS service answers: of each communicator, how many collectives each rank on any host has launched.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct RasRank {
    unsigned rank = 0;
    std::string host{}; // as the job's network has it
    int64_t pid = -1;   // there; -1: not known
    bool missing = false, unresponsive = false, dead = false;
    int64_t error = 0;                        // that its communicator has come to
    std::map<std::string, uint64_t> counts{}; // by operation; none of those that are missing
    bool operator==(const RasRank&) const = default;
};

struct RasCommunicator {
    uint64_t hash = 0;
    unsigned size = 0; // ranks
    std::vector<RasRank> ranks{};
    bool operator==(const RasCommunicator&) const = default;
};

// nullopt where it is none.
std::optional<std::vector<RasCommunicator>> parse_ras_report(std::string_view json);

// The ranks that keep others waiting, as far as it tells: those that say nothing, and those that have launched fewer of
// some operation than others have.
struct RasFinding {
    std::vector<unsigned> ranks;
    std::string text;               // of all
    std::vector<std::string> lines; // of each of these
};
RasFinding look_at(const RasCommunicator& communicator);

} // namespace gpusnoop
