// SPDX-License-Identifier: Apache-2.0
// Client of NCCL's RAS service, which counts how many collectives each rank has launched, on all hosts.
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
    std::string host{}; // address of the rank's host in the job's network
    int64_t pid = -1;   // process id on that host; -1 if not known
    bool missing = false, unresponsive = false, dead = false;
    int64_t error = 0;                        // asynchronous error of the rank's communicator, an ncclResult_t
    std::map<std::string, uint64_t> counts{}; // by operation: number of launched collectives; empty for missing ranks
    bool operator==(const RasRank&) const = default;
};

struct RasCommunicator {
    uint64_t hash = 0;
    unsigned size = 0; // number of all ranks; `ranks` may have fewer
    std::vector<RasRank> ranks{};
    bool operator==(const RasCommunicator&) const = default;
};

// nullopt if the text is not a RAS report.
std::optional<std::vector<RasCommunicator>> parse_ras_report(std::string_view json);

// Ranks that keep others waiting, according to RAS. These are missing ranks, and ranks that have launched an operation
// less often than other ranks.
struct RasFinding {
    std::vector<unsigned> ranks;
    std::string text;               // sentence about the communicator
    std::vector<std::string> lines; // one line about each of the ranks
};
RasFinding analyze(const RasCommunicator& communicator);

// Connection to the RAS service. Since NCCL 2.24, each rank's process has a RAS thread, which listens on a TCP port of
// the loopback interface. The RAS threads of all hosts are connected, so each one can report the progress of all ranks.
class RasClient {
public:
    static constexpr uint16_t usual_port = 28028;
    static constexpr size_t answer_max = 2 << 20;

    explicit RasClient(uint16_t port);

    using Answer = LoopbackResponse; // `text` contains JSON

    bool pending() const { return request_.pending(); }
    // Sends a request, unless one is pending.
    void start(uint64_t now_ns) { request_.start(now_ns); }
    // Call this regularly. Returns one answer per request.
    std::optional<Answer> poll(uint64_t now_ns);

private:
    LoopbackRequest request_;
};

// Verdicts from the RAS service on communicators that make no progress. Their ranks may be on other hosts, and the
// stall may have begun before the run.
class RasVerdicts {
public:
    // again_ns: poll() returns a verdict if ranks of a communicator are behind, and the RAS report on this communicator
    // has not changed for this long.
    RasVerdicts(uint16_t port, uint64_t again_ns) : client_(port), port_(port), again_ns_(again_ns) {}

    // Requests a report on the communicator of a verdict.
    void request(const CollectiveVerdict& verdict);
    // Call this once a second. Returns new verdicts.
    std::vector<CollectiveVerdict> poll(uint64_t now_ns);

private:
    struct Status {
        RasCommunicator report;
        uint64_t since_ns = 0;
        bool reported = false;
    };
    void apply(const std::vector<RasCommunicator>& report, uint64_t now_ns, std::vector<CollectiveVerdict>& verdicts);
    void warn_of_error(const std::string& why);

    RasClient client_;
    uint16_t port_;
    uint64_t again_ns_;
    uint64_t next_ns_ = 0; // earliest time of the next request
    // Requests still to send at the start, without a verdict. Two are needed, because a communicator that makes no
    // progress is recognized by a report that does not change.
    unsigned initial_requests_ = 2;
    std::map<uint64_t, Collectives::Ref> wanted_;    // by hash: communicators that need a verdict from the next request
    std::map<uint64_t, Collectives::Ref> requested_; // by hash: communicators that need a verdict from the pending
                                                     // request
    std::map<uint64_t, Status> statuses_;            // by hash: communicators in the last RAS report
    std::string reported_;                           // the last reported error
};

} // namespace gpusnoop
