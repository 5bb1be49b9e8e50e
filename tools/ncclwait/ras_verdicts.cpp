// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/ras_verdicts.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr uint64_t pause_ns = 2'000'000'000; // between questions: each one goes to all hosts of the job

} // namespace

void RasVerdicts::told(const CollectiveVerdict& verdict)
{
    wanted_[verdict.stall.of.hash] = verdict.stall.of;
}

std::vector<CollectiveVerdict> RasVerdicts::look(uint64_t now_ns)
{
    std::vector<CollectiveVerdict> verdicts;
    if (const auto answer = client_.take(now_ns)) {
        const auto report = parse_ras_report(answer->text);
        if (!answer->why_not.empty() || !report)
            say_why_not(answer->why_not.empty() ? "its answer is not what NCCL's would be" : answer->why_not);
        else
            take(*report, now_ns, verdicts);
        asked_.clear();
        next_ns_ = now_ns + (wanted_.empty() ? again_ns_ : pause_ns);
    }
    if (!wanted_.empty())
        next_ns_ = std::min(next_ns_, now_ns + pause_ns);
    if (!client_.asks() && now_ns >= next_ns_ && (looks_ || !wanted_.empty())) {
        looks_ -= looks_ ? 1 : 0;
        asked_ = std::exchange(wanted_, {});
        client_.ask(now_ns);
    }
    return verdicts;
}

void RasVerdicts::take(const std::vector<RasCommunicator>& report, uint64_t now_ns,
                       std::vector<CollectiveVerdict>& verdicts)
{
    std::map<uint64_t, Seen> before = std::exchange(seen_, {});
    for (const RasCommunicator& communicator : report) {
        Seen& seen = seen_[communicator.hash] = before[communicator.hash];
        if (seen.report != communicator)
            seen = {.report = communicator, .since_ns = now_ns, .told = false};
        const auto of = asked_.find(communicator.hash);
        RasFinding finding = look_at(communicator);
        const bool stands = !finding.ranks.empty() && now_ns >= seen.since_ns + again_ns_;
        if (of == asked_.end() && (seen.told || !stands))
            continue;
        seen.told = true;
        CollectiveVerdict verdict{.kind = "ras",
                                  .stall = {},
                                  .time_ns = now_ns,
                                  .ranks = std::move(finding.ranks),
                                  .text = std::move(finding.text)};
        verdict.stall.of = of == asked_.end() ? Collectives::Of{.joined = Joined::not_yet} : of->second;
        verdict.stall.of.hash = communicator.hash;
        verdict.stall.of.ranks = communicator.size;
        for (std::string& line : finding.lines)
            verdict.doing.push_back({.text = std::move(line)});
        verdicts.push_back(std::move(verdict));
    }
}

// Once, until it is another reason.
void RasVerdicts::say_why_not(const std::string& why)
{
    if (said_ == why)
        return;
    said_ = why;
    warn(fmt::format("NCCL's RAS service at port {} of this host says nothing: {}", port_, why));
}

} // namespace gpusnoop
