// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/ras_client.hpp"

#include <string_view>

namespace gpusnoop {
namespace {

// It answers after 10 s at the most, of whatever has answered it by then.
constexpr uint64_t patience_ns = 15'000'000'000;

// Line by line. JSON is known from 2.28.7 on; older ones refuse the format, and go on in text.
constexpr const char* question = "CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n";

// A line for the protocol, one for the format, and the answer itself.
RasClient::Answer behind_heading(const std::string& all)
{
    const size_t first = all.find('\n'), second = first == all.npos ? first : all.find('\n', first + 1);
    if (!all.starts_with("SERVER PROTOCOL ") || second == all.npos)
        return {.text = {}, .why_not = "what listens there is no RAS service of NCCL"};
    if (std::string_view(all).substr(first + 1, second - first - 1) != "OK")
        return {.text = {},
                .why_not = "it is of an NCCL older than 2.28.7, and has no JSON (ncclras shows what it has)"};
    return {.text = all.substr(second + 1)};
}

} // namespace

RasClient::RasClient(uint16_t port)
    : question_({.port = port, .question = question, .largest = answer_max, .patience_ns = patience_ns})
{}

std::optional<RasClient::Answer> RasClient::take(uint64_t now_ns)
{
    const auto answer = question_.take(now_ns);
    return answer && answer->why_not.empty() ? behind_heading(answer->text) : answer;
}

} // namespace gpusnoop
