// SPDX-License-Identifier: Apache-2.0
#include "calls/ras_client.hpp"

#include "util/error.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <utility>

namespace gpusnoop {
namespace {

// It answers after 10 s at the most, of whatever has answered it by then.
constexpr uint64_t patience_ns = 15'000'000'000;

// Line by line. JSON is known from 2.28.7 on; older ones refuse the format, and go on in text.
constexpr std::string_view question = "CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n";

// "localhost", which NCCL listens at, is the one or the other.
int connect_to(int fd, int family, uint16_t port)
{
    if (family == AF_INET) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

} // namespace

bool RasClient::begin(int family)
{
    socket_ = Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    family_ = family;
    if (socket_ && (connect_to(socket_.get(), family, port_) == 0 || errno == EINPROGRESS))
        return true;
    refused_ = errno_text(errno);
    socket_ = Fd();
    return false;
}

void RasClient::ask(uint64_t now_ns)
{
    if (asks() || !refused_.empty())
        return;
    since_ns_ = now_ns;
    sent_ = false;
    received_.clear();
    begin(AF_INET) || begin(AF_INET6);
    if (asks() && send_question())
        refused_.clear();
}

// True until it has failed.
bool RasClient::send_question()
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
        const ssize_t sent = send(socket_.get(), question.data(), question.size(), MSG_NOSIGNAL);
        sent_ = sent == static_cast<ssize_t>(question.size()); // the buffer of a new connection is large enough
        if (sent_ || (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)))
            return true;
        error = sent < 0 ? errno : EPIPE;
    }
    if (family_ == AF_INET && begin(AF_INET6)) {
        refused_.clear();
        return true;
    }
    refused_ = errno_text(error);
    socket_ = Fd();
    return false;
}

std::optional<RasClient::Answer> RasClient::take(uint64_t now_ns)
{
    if (!asks())
        return refused_.empty() ? std::nullopt : std::optional(end(std::exchange(refused_, {})));
    if (!sent_ && !send_question())
        return end(std::exchange(refused_, {}));
    std::array<char, 65536> part;
    while (sent_) {
        const ssize_t got = recv(socket_.get(), part.data(), part.size(), 0);
        if (got == 0)
            return finished();
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return end(errno_text(errno));
        if (got < 0)
            break;
        received_.append(part.data(), static_cast<size_t>(got));
        if (received_.size() > answer_max)
            return end(fmt::format("its answer is longer than {} MiB", answer_max >> 20));
    }
    if (now_ns > since_ns_ + patience_ns)
        return end(fmt::format("no whole answer within {} s", patience_ns / 1'000'000'000));
    return std::nullopt;
}

RasClient::Answer RasClient::end(std::string why_not)
{
    socket_ = Fd();
    received_.clear();
    return {.text = {}, .why_not = std::move(why_not)};
}

// A line for the protocol, one for the format, and the answer itself.
RasClient::Answer RasClient::finished()
{
    const std::string_view all = received_;
    const size_t first = all.find('\n'), second = first == all.npos ? first : all.find('\n', first + 1);
    if (!all.starts_with("SERVER PROTOCOL ") || second == all.npos)
        return end("what listens there is no RAS service of NCCL");
    if (all.substr(first + 1, second - first - 1) != "OK")
        return end("it is of an NCCL older than 2.28.7, and has no JSON (ncclras shows what it has)");
    Answer answer{.text = received_.substr(second + 1), .why_not = {}};
    end({});
    return answer;
}

} // namespace gpusnoop
