// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS service says of communicators that do not go on, whose ranks may be on other hosts, and which may
// have stopped before the run began.
#pragma once

#include "tools/ncclwait/collective_verdicts.hpp"
#include "tools/ncclwait/ras_client.hpp"
#include "tools/ncclwait/ras_report.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace gpusnoop {

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
