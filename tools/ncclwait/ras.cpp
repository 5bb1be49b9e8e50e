// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/ras.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "tools/ncclwait/collective_verdicts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace gpusnoop {

namespace {

using Json = nlohmann::json;

constexpr int deepest = 8;
constexpr size_t max_rank_lines = 16;
constexpr size_t operations_max = 32;

const Json& at(const Json& object, const char* key)
{
    static const Json none;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : none;
}

int64_t number(const Json& object, const char* key, int64_t otherwise)
{
    const Json& value = at(object, key);
    return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

std::string text(const Json& object, const char* key)
{
    const Json& value = at(object, key);
    return value.is_string() ? value.get<std::string>().substr(0, 64) : std::string();
}

bool is_true(const Json& object, const char* key)
{
    const Json& value = at(object, key);
    return value.is_boolean() && value.get<bool>();
}

// "0x1234"
std::optional<uint64_t> hash_of(const std::string& text)
{
    return text.starts_with("0x") ? parse_number<uint64_t>(std::string_view(text).substr(2), 16) : std::nullopt;
}

void add_ranks(const Json& list, bool missing, RasCommunicator& communicator)
{
    if (!list.is_array())
        return;
    for (const Json& one : list) {
        const int64_t number_of = number(one, "rank", -1);
        if (number_of < 0 || number_of >= communicator.size)
            continue;
        RasRank rank{.rank = static_cast<unsigned>(number_of),
                     .host = text(one, "host"),
                     .pid = number(one, "pid", -1),
                     .missing = missing};
        const Json& status = at(one, "status");
        rank.unresponsive = is_true(status, "unresponsive");
        rank.dead = is_true(status, "considered_dead");
        rank.error = number(status, "async_error", 0);
        if (const Json& counts = at(one, "collective_counts"); counts.is_object())
            for (const auto& [operation, count] : counts.items())
                if (count.is_number_unsigned() && rank.counts.size() < operations_max)
                    rank.counts[operation.substr(0, 32)] = count.get<uint64_t>();
        communicator.ranks.push_back(std::move(rank));
    }
}

std::string rank_text(const RasRank& rank)
{
    std::string text = fmt::format("rank {}", rank.rank);
    if (rank.pid >= 0)
        text += fmt::format(" (process {} on {})", rank.pid, rank.host);
    return text;
}

// Explains how the rank is behind the others; empty if it is not.
std::string behind(const RasRank& rank, const std::map<std::string, uint64_t>& max_counts)
{
    if (rank.missing)
        return rank.dead           ? "is considered dead"
               : rank.unresponsive ? "does not answer"
                                   : "does not know the communicator";
    std::string text;
    for (const auto& [operation, count] : rank.counts)
        if (count < max_counts.at(operation))
            text += fmt::format("{}{} of {} {}", text.empty() ? "has launched " : ", ", count, max_counts.at(operation),
                                operation);
    return text;
}

} // namespace

std::optional<std::vector<RasCommunicator>> parse_ras_report(std::string_view json)
{
    const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= deepest; };
    const Json report = Json::parse(json.begin(), json.end(), shallow, false);
    const Json& list = at(report, "communicators");
    if (!list.is_array())
        return std::nullopt;
    std::vector<RasCommunicator> all;
    for (const Json& one : list) {
        const auto hash = hash_of(text(one, "hash"));
        const int64_t size = number(one, "size", 0);
        if (!hash || size <= 0 || size > INT32_MAX)
            continue;
        RasCommunicator communicator{.hash = *hash, .size = static_cast<unsigned>(size), .ranks = {}};
        add_ranks(at(one, "ranks"), false, communicator);
        add_ranks(at(one, "missing_ranks"), true, communicator);
        std::ranges::stable_sort(communicator.ranks, {}, &RasRank::rank);
        all.push_back(std::move(communicator));
    }
    return all;
}

RasFinding analyze(const RasCommunicator& communicator)
{
    std::map<std::string, uint64_t> max_counts;
    for (const RasRank& rank : communicator.ranks)
        for (const auto& [operation, count] : rank.counts)
            max_counts[operation] = std::max(max_counts[operation], count);
    RasFinding finding;
    std::vector<unsigned> failed;
    for (const RasRank& rank : communicator.ranks) {
        const std::string problem = behind(rank, max_counts);
        if (!problem.empty()) {
            finding.ranks.push_back(rank.rank);
            finding.lines.push_back(fmt::format("{} {}", rank_text(rank), problem));
        }
        if (rank.error && rank.error != 7) // ncclInProgress
            failed.push_back(rank.rank);
    }
    const size_t lines = finding.lines.size();
    if (lines > max_rank_lines) {
        finding.lines.resize(max_rank_lines);
        finding.lines.push_back(fmt::format("and {} more", lines - max_rank_lines));
    }
    finding.text = "according to NCCL's RAS service (all hosts), ";
    if (finding.ranks.empty() && communicator.ranks.size() == 1)
        finding.text += "only one rank is known, so ranks cannot be compared";
    else if (finding.ranks.empty())
        finding.text +=
            fmt::format("all {} known ranks have launched the same number of collectives", communicator.ranks.size());
    else
        finding.text += fmt::format("{} of {} {} behind or missing", ranks_in_words(finding.ranks), communicator.size,
                                    lines == 1 ? "is" : "are");
    if (const size_t unknown = communicator.size - std::min<size_t>(communicator.size, communicator.ranks.size()))
        finding.text += fmt::format("; it has no data on {} rank{}", unknown, unknown == 1 ? "" : "s");
    if (!failed.empty())
        finding.text += fmt::format("; error in {}", ranks_in_words(failed));
    return finding;
}

namespace {

// The service answers after 10 s at the latest, and leaves out ranks that have not responded by then.
constexpr uint64_t ras_timeout_ns = 15'000'000'000;

// The service supports JSON since NCCL 2.28.7. Older versions refuse the format and answer in text.
constexpr const char* status_request = "CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n";

// Strips the first two lines, which confirm the protocol and the format.
RasClient::Answer body_of(const std::string& all)
{
    const size_t first = all.find('\n'), second = first == all.npos ? first : all.find('\n', first + 1);
    if (!all.starts_with("SERVER PROTOCOL ") || second == all.npos)
        return {.text = {}, .error = "the listener is not NCCL's RAS service"};
    if (std::string_view(all).substr(first + 1, second - first - 1) != "OK")
        return {.text = {},
                .error = "NCCL is older than 2.28.7, so its RAS service has no JSON output; use ncclras instead"};
    return {.text = all.substr(second + 1)};
}

} // namespace

RasClient::RasClient(uint16_t port)
    : request_({.port = port, .request = status_request, .max_bytes = answer_max, .timeout_ns = ras_timeout_ns})
{}

std::optional<RasClient::Answer> RasClient::poll(uint64_t now_ns)
{
    const auto answer = request_.poll(now_ns);
    return answer && answer->error.empty() ? body_of(answer->text) : answer;
}

namespace {

constexpr uint64_t pause_ns = 2'000'000'000; // minimum pause between requests, because each one involves all hosts of
                                             // the job

} // namespace

void RasVerdicts::request(const CollectiveVerdict& verdict)
{
    wanted_[verdict.stall.ref.hash] = verdict.stall.ref;
}

std::vector<CollectiveVerdict> RasVerdicts::poll(uint64_t now_ns)
{
    std::vector<CollectiveVerdict> verdicts;
    if (const auto answer = client_.poll(now_ns)) {
        const auto report = parse_ras_report(answer->text);
        if (!answer->error.empty() || !report)
            warn_of_error(answer->error.empty() ? "its answer is not a RAS report" : answer->error);
        else
            apply(*report, now_ns, verdicts);
        requested_.clear();
        next_ns_ = now_ns + (wanted_.empty() ? again_ns_ : pause_ns);
    }
    if (!wanted_.empty())
        next_ns_ = std::min(next_ns_, now_ns + pause_ns);
    if (!client_.pending() && now_ns >= next_ns_ && (initial_requests_ || !wanted_.empty())) {
        initial_requests_ -= initial_requests_ ? 1 : 0;
        requested_ = std::exchange(wanted_, {});
        client_.start(now_ns);
    }
    return verdicts;
}

void RasVerdicts::apply(const std::vector<RasCommunicator>& report, uint64_t now_ns,
                        std::vector<CollectiveVerdict>& verdicts)
{
    std::map<uint64_t, Status> before = std::exchange(statuses_, {});
    for (const RasCommunicator& communicator : report) {
        Status& status = statuses_[communicator.hash] = before[communicator.hash];
        if (status.report != communicator)
            status = {.report = communicator, .since_ns = now_ns, .reported = false};
        const auto found = requested_.find(communicator.hash);
        RasFinding finding = analyze(communicator);
        const bool is_behind = !finding.ranks.empty() && now_ns >= status.since_ns + again_ns_;
        if (found == requested_.end() && (status.reported || !is_behind))
            continue;
        status.reported = true;
        CollectiveVerdict verdict{.kind = "ras",
                                  .stall = {},
                                  .time_ns = now_ns,
                                  .ranks = std::move(finding.ranks),
                                  .text = std::move(finding.text)};
        verdict.stall.ref = found == requested_.end() ? Collectives::Ref{.joined = Joined::not_yet} : found->second;
        verdict.stall.ref.hash = communicator.hash;
        verdict.stall.ref.ranks = communicator.size;
        for (std::string& line : finding.lines)
            verdict.activities.push_back({.text = std::move(line)});
        verdicts.push_back(std::move(verdict));
    }
}

// Warns only if the error differs from the last one.
void RasVerdicts::warn_of_error(const std::string& why)
{
    if (reported_ == why)
        return;
    reported_ = why;
    warn(fmt::format("cannot query NCCL's RAS service on port {}: {}", port_, why));
}

} // namespace gpusnoop
