// SPDX-License-Identifier: Apache-2.0
#include "base/loopback_question.hpp"

#include "base/error.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <utility>

namespace gpusnoop {
namespace {

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

bool LoopbackQuestion::begin(int family)
{
    socket_ = Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    family_ = family;
    if (socket_ && (connect_to(socket_.get(), family, about_.port) == 0 || errno == EINPROGRESS))
        return true;
    refused_ = errno_text(errno);
    socket_ = Fd();
    return false;
}

void LoopbackQuestion::ask(uint64_t now_ns)
{
    if (asks() || !refused_.empty())
        return;
    since_ns_ = now_ns;
    sent_ = false;
    received_.clear();
    const bool both = about_.family == AF_UNSPEC;
    begin(both ? AF_INET : about_.family) || (both && begin(AF_INET6));
    if (asks() && send_question())
        refused_.clear();
}

// True until it has failed.
bool LoopbackQuestion::send_question()
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
        const ssize_t sent = send(socket_.get(), about_.question.data(), about_.question.size(), MSG_NOSIGNAL);
        // The buffer of a new connection is large enough.
        sent_ = sent == static_cast<ssize_t>(about_.question.size());
        if (sent_ || (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)))
            return true;
        error = sent < 0 ? errno : EPIPE;
    }
    if (about_.family == AF_UNSPEC && family_ == AF_INET && begin(AF_INET6)) {
        refused_.clear();
        return true;
    }
    refused_ = errno_text(error);
    socket_ = Fd();
    return false;
}

std::optional<LoopbackAnswer> LoopbackQuestion::take(uint64_t now_ns)
{
    if (!asks())
        return refused_.empty() ? std::nullopt : std::optional(end(std::exchange(refused_, {})));
    if (!sent_ && !send_question())
        return end(std::exchange(refused_, {}));
    std::array<char, 65536> part;
    while (sent_) {
        const ssize_t got = recv(socket_.get(), part.data(), part.size(), 0);
        if (got == 0)
            return LoopbackAnswer{std::exchange(received_, {}), end({}).why_not};
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return end(errno_text(errno));
        if (got < 0)
            break;
        received_.append(part.data(), static_cast<size_t>(got));
        if (received_.size() > about_.largest)
            return end(fmt::format("its answer is longer than {} MiB", about_.largest >> 20));
    }
    if (now_ns > since_ns_ + about_.patience_ns)
        return end(fmt::format("no whole answer within {} s", about_.patience_ns / 1'000'000'000));
    return std::nullopt;
}

LoopbackAnswer LoopbackQuestion::end(std::string why_not)
{
    socket_ = Fd();
    received_.clear();
    return {.text = {}, .why_not = std::move(why_not)};
}

} // namespace gpusnoop
