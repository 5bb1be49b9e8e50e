// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS service answers: of each communicator, how many collectives each rank on any host has launched.
#pragma once

#include "base/loopback_request.hpp"
#include "tools/ncclwait/collective_verdicts.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// NCCL's own RAS service: from 2.24 on, a thread of each rank's process listens on a TCP port of the loopback, knows
// those of all hosts, and says how far their ranks have come.
class RasClient {
public:
    static constexpr uint16_t usual_port = 28028;
    static constexpr size_t answer_max = 2 << 20;

    explicit RasClient(uint16_t port);

    using Answer = LoopbackResponse; // text: JSON

    bool pending() const { return request_.pending(); }
    // Unless it asks already.
    void start(uint64_t now_ns) { request_.start(now_ns); }
    // To be called now and then; once for each question there is an answer.
    std::optional<Answer> poll(uint64_t now_ns);

private:
    LoopbackRequest request_;
};

// What NCCL's RAS service says of communicators that do not go on, whose ranks may be on other hosts, and which may
// have stopped before the run began.
class RasVerdicts {
public:
    // again_ns: of what has not changed for so long, it is told who is behind.
    RasVerdicts(uint16_t port, uint64_t again_ns) : client_(port), port_(port), again_ns_(again_ns) {}

    // This one has been told: the service is asked about it.
    void told(const CollectiveVerdict& verdict);
    // To be called once a second.
    std::vector<CollectiveVerdict> look(uint64_t now_ns);

private:
    struct Seen {
        RasCommunicator report;
        uint64_t since_ns = 0;
        bool told = false;
    };
    void take(const std::vector<RasCommunicator>& report, uint64_t now_ns, std::vector<CollectiveVerdict>& verdicts);
    void say_why_not(const std::string& why);

    RasClient client_;
    uint16_t port_;
    uint64_t again_ns_;
    uint64_t next_ns_ = 0;                       // not before then is it asked
    unsigned looks_ = 2;                         // that are due: who stays behind is told by two
    std::map<uint64_t, Collectives::Of> wanted_; // by hash: told since it was asked last
    std::map<uint64_t, Collectives::Of> asked_;  // ... and before that
    std::map<uint64_t, Seen> seen_;              // by hash, as of the last answer
    std::string said_;                           // why it does not answer
};

} // namespace gpusnoop
